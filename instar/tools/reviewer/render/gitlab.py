"""Renders a report as GitLab's Code Quality artifact: findings on the lines of a merge request.

``render/__init__.py`` calls it for ``--output gitlab``, with a ``Report``.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from instar.tools.reviewer.render.shared import place
from instar.tools.reviewer.report import Finding, Problem, Report, Severity

_SEVERITY = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}


def to_gitlab(report: Report) -> str:
    items = [_finding(item) for item in report.findings]
    items += [_problem(item) for item in report.problems]
    return json.dumps(items, indent=2, ensure_ascii=False) + "\n"


def issue(
    *, text: str, rule: str, fingerprint: str, severity: str, file: str, line: int
) -> dict[str, Any]:
    """Return one entry; GitLab needs a path and a line for each."""
    return {
        "description": text,
        "check_name": rule,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": file or "-", "lines": {"begin": max(line, 1)}},
    }


def _finding(item: Finding) -> dict[str, Any]:
    return issue(
        text=f"{item.crd} {place(item)}: {item.message}",
        rule=item.rule,
        fingerprint=item.fingerprint,
        severity=_SEVERITY[item.severity],
        file=item.file,
        line=item.line,
    )


def _problem(item: Problem) -> dict[str, Any]:
    return issue(
        text=item.message,
        rule="unreadable-input",
        fingerprint=hashlib.sha256(str(item).encode()).hexdigest()[:16],
        severity="blocker",
        file=item.file,
        line=item.line,
    )
