"""The report as GitHub workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

from instar.reviewer.render.shared import place
from instar.reviewer.report import Finding, Problem, Report, Severity

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def to_github(report: Report) -> str:
    lines = [_annotation(item) for item in report.findings]
    lines += [_problem(item) for item in report.problems]
    return "\n".join(lines) + "\n" if lines else ""


def _annotation(item: Finding) -> str:
    properties = _place(item.file, item.line)
    title = f"title={_property(item.rule)}"
    text = f"{item.crd} {place(item)}: {item.message}"
    command = _COMMAND[item.severity]
    return f"::{command} {','.join([*properties, title])}::{_data(text)}"


def _problem(item: Problem) -> str:
    properties = ",".join([*_place(item.file, item.line), "title=instar review"])
    return f"::error {properties}::{_data(item.message)}"


def _place(file: str, line: int) -> list[str]:
    if not file or file.startswith(("git:", "kube:", "<")):
        return []
    return [f"file={_property(file)}", *([f"line={line}"] if line else [])]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
