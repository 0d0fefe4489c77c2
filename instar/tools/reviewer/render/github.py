"""Renders a report as GitHub workflow commands: annotations on the lines of a pull request.

``render/__init__.py`` calls it for ``--output github``, with a ``Report``.
"""

from __future__ import annotations

from instar.base.escaping import workflow_property, workflow_text
from instar.tools.reviewer.render.shared import place
from instar.tools.reviewer.report import Finding, Problem, Report, Severity

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def to_github(report: Report) -> str:
    lines = [_annotation(item) for item in report.findings]
    lines += [_problem(item) for item in report.problems]
    return "\n".join(lines) + "\n" if lines else ""


def annotation(command: str, *, title: str, text: str, file: str = "", line: int = 0) -> str:
    """Return one workflow command; ``command`` is error, warning or notice."""
    properties = ",".join([*_place(file, line), f"title={workflow_property(title)}"])
    return f"::{command} {properties}::{workflow_text(text)}"


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
    return [f"file={workflow_property(file)}", *([f"line={line}"] if line else [])]
