"""Text helpers shared by the report renderers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import yaml

from instar.base.plurals import counted
from instar.tools.reviewer.report import CrdReview, Effect, Finding, Report, Severity, Witness

_LONG_TEXT = 80
"""A string with more characters is cut."""
_LONG_LIST = 12
"""Of a list or object with more items only this number is shown."""
SHOWN = (Severity.ERROR, Severity.WARNING, Severity.INFO)
"""Severities in the order in which reports show them."""
DOCS = "https://github.com/instar-dev/instar/blob/main/docs/reference/rules.md"


def place(finding: Finding) -> str:
    """Return the place of a finding, ``v1 spec.size``, as short as possible."""
    return " ".join(filter(None, (finding.version, finding.path)))


def location(finding: Finding) -> str:
    if not finding.file:
        return ""
    return f"{finding.file}:{finding.line}" if finding.line else finding.file


def merge_findings(findings: Sequence[Finding]) -> list[tuple[Finding, int]]:
    """Merge findings that several versions have in common; return each with the number of findings
    merged.
    """
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for item in findings:
        key = (item.rule, item.severity, item.path, item.key, item.message)
        alike.setdefault(key, []).append(item)
    return [
        (replace(group[0], version=",".join(item.version for item in group)), len(group))
        for group in alike.values()
    ]


def is_unchanged(crd: CrdReview) -> bool:
    """Return whether the review has no findings about the CRD."""
    return not crd.findings and not crd.stored


def hits(finding: Finding) -> str:
    """Return which clients notice a finding."""
    return ", ".join(hit.value for hit in finding.hits)


def as_yaml(value: object) -> str:
    """Return a value as YAML for display: long texts and lists are cut, with their length."""
    return yaml.safe_dump(_short(value), sort_keys=False, allow_unicode=True, width=100)


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONG_TEXT:
        return f"{value[:20]}… ({len(value)} characters)"
    if isinstance(value, dict):
        shown = dict(islice(value.items(), _LONG_LIST))
        more = len(value) - len(shown)
        short = {name: _short(item) for name, item in shown.items()}
        return {**short, f"… {more} more": "…"} if more else short
    if isinstance(value, list):
        items = [_short(item) for item in value[:_LONG_LIST]]
        more = len(value) - len(items)
        return [*items, f"… {more} more"] if more else items
    return value


def witness_lines(witness: Witness) -> list[str]:
    """Return the effect on the witness as two lines."""
    if witness.new_version:
        return [
            f"written at {witness.version}: {witness.old.says()}",
            f"then at {witness.new_version}: {witness.new.says()}",
        ]
    verb = "the update is" if witness.before is not None else "it is"
    if witness.through_status:
        verb = "its status, written to /status, is"
    lines = [f"old: {verb} {witness.old.says()}", f"new: {verb} {witness.new.says()}"]
    if witness.effect is Effect.CHANGED:
        lines.append("both take it, but it reads differently afterwards")
    return lines


def counts(report: Report) -> str:
    """Return the number of findings per severity."""
    words = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    return ", ".join(counted(report.count(severity), word) for severity, word in words.items())


def slug(rule: str) -> str:
    """Return the link to the documentation of a rule."""
    return f"{DOCS}#{rule}"
