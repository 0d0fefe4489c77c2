"""Outputs of a report: several formats at once, each to a file or to standard output.

``instar review`` and ``rehearse`` use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from instar.tools.reviewer.git import GitError, repository
from instar.tools.reviewer.report import Report

FORMS = ("text", "markdown", "json", "sarif", "github", "gitlab", "junit", "html")


class ReportOutput(NamedTuple):
    form: str
    file: Path | None
    """The file; None means standard output."""


def read_output(text: str, forms: Sequence[str] = FORMS) -> ReportOutput:
    """Parse ``FORM`` or ``FORM=FILE``. Raises ``ValueError`` that says what was expected."""
    form, _, file = text.partition("=")
    if form not in forms:
        raise ValueError(f"{form!r} is no form of a report; there is {', '.join(forms)}")
    return ReportOutput(form, Path(file) if file else None)


def in_repository(report: Report, locate: Callable[[str], str]) -> Report:
    """Return the report with paths relative to the repository, as annotations and code scanning
    need them.
    """
    crds = [
        replace(
            crd,
            findings=tuple(replace(item, file=locate(item.file)) for item in crd.findings),
            suppressed=tuple(replace(item, file=locate(item.file)) for item in crd.suppressed),
        )
        for crd in report.crds
    ]
    problems = tuple(replace(item, file=locate(item.file)) for item in report.problems)
    return replace(report, crds=tuple(crds), problems=problems)


def path_in_repository(file: str) -> str:
    """Return a path relative to the root of its repository; unchanged outside of a repository."""
    if not file or file.startswith(("git:", "kube:", "<")):
        return file
    try:
        return repository(file)[1] or file
    except GitError:
        return file


def mixes_formats(outputs: Sequence[ReportOutput]) -> bool:
    """Return whether two formats would be mixed on standard output. Annotations are allowed,
    because they are single lines.
    """
    forms = {each.form for each in outputs if each.file is None} - {"github"}
    return len(forms) > 1
