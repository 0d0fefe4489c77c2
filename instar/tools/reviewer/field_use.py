"""Adds to findings about removed fields the number of real objects that set them, and the managers.
Pure.

``reviewing.py`` calls it when objects are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from instar.base.json_values import Object
from instar.kube.api.names import parse_group_version
from instar.kube.apply.field_usage import FieldTally
from instar.tools.reviewer.report import Finding
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_groups import VALUE_LOSSES


def with_use(
    findings: Iterable[Finding], old: ReviewedCrd | None, objects: Sequence[Object]
) -> tuple[Finding, ...]:
    """Add texts like ``3 of 4120 objects set spec.legacy, all by helm``."""
    tallies: dict[str, FieldTally] = {}
    for obj in objects if old is not None else ():
        version = parse_group_version(obj["apiVersion"]).version
        if version not in tallies:
            known = None if old is None else old.crd.version(version)
            tallies[version] = FieldTally(None if known is None else known.schema)
        tallies[version].add(obj)
    return tuple(_counted(finding, tallies) for finding in findings)


def _counted(finding: Finding, tallies: dict[str, FieldTally]) -> Finding:
    tally = tallies.get(finding.version)
    if tally is None or finding.rule not in VALUE_LOSSES:
        return finding
    said = tally.of(finding.path).says(tally.total)
    return replace(finding, message=f"{finding.message}; {said}")
