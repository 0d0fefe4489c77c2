"""Renders a report as GitHub workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

from instar.tools.reviewer.render.shared import place
from instar.tools.reviewer.report import Finding, Problem, Report, Severity

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def to_github(report: Report) -> str:
    lines = [_annotation(item) for item in report.findings]
    lines += [_problem(item) for item in report.problems]
    return "\n".join(lines) + "\n" if lines else ""


def annotation(command: str, *, title: str, text: str, file: str = "", line: int = 0) -> str:
    """Return one workflow command; ``command`` is error, warning or notice."""
    properties = ",".join([*_place(file, line), f"title={_property(title)}"])
    return f"::{command} {properties}::{_data(text)}"


def _annotation(item: Finding) -> str:
    text = f"{item.crd} {place(item)}: {item.message}"
    command = _COMMAND[item.severity]
    return annotation(command, title=item.rule, text=text, file=item.file, line=item.line)


def _problem(item: Problem) -> str:
    title = "instar review"
    return annotation("error", title=title, text=item.message, file=item.file, line=item.line)


def _place(file: str, line: int) -> list[str]:
    if not file or file.startswith(("git:", "kube:", "<")):
        return []
    return [f"file={_property(file)}", *([f"line={line}"] if line else [])]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
