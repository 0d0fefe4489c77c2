"""Renders a report as SARIF 2.1.0, for code scanning.

``render/__init__.py`` calls it for ``--output sarif``, with a ``Report``.
"""

from __future__ import annotations

import json
from typing import Any

from instar.base.escaping import sarif_text
from instar.tools.reviewer.advice import advice
from instar.tools.reviewer.render.json import json_pointer
from instar.tools.reviewer.render.shared import place, slug
from instar.tools.reviewer.report import CrdReview, Finding, Report, Severity
from instar.tools.reviewer.rules import RULES

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def to_sarif(report: Report) -> str:
    run = {
        "tool": {
            "driver": {
                "name": "instar review",
                "informationUri": slug("").rstrip("#"),
                "rules": [_rule(rule.id, rule.summary, rule.severity) for rule in RULES],
            }
        },
        "results": [
            _result(item, hidden)
            for crd in report.crds
            for hidden, group in _groups(crd)
            for item in group
        ],
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": sarif_text(str(problem))}}
                    for problem in report.problems
                ],
            }
        ],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _groups(crd: CrdReview) -> list[tuple[bool, tuple[Finding, ...]]]:
    return [(False, crd.findings), (True, crd.suppressed)]


def _rule(name: str, summary: str, severity: Severity) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": summary},
        "help": {"text": advice(name)},
        "helpUri": slug(name),
        "defaultConfiguration": {
            "level": _LEVEL.get(severity, "none"),
            "enabled": severity is not Severity.OFF,
        },
    }


def _result(item: Finding, hidden: bool) -> dict[str, Any]:
    logical = {"fullyQualifiedName": f"{item.crd}{json_pointer(item.pointer)}"}
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if item.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": item.file.replace("\\", "/")},
            "region": {"startLine": max(item.line, 1)},
        }
    found: dict[str, Any] = {
        "ruleId": item.rule,
        "level": _LEVEL[item.severity],
        "message": {"text": sarif_text(f"{item.crd} {place(item)}: {item.message}")},
        "locations": [location],
        "partialFingerprints": {"instarReview/v1": item.fingerprint},
    }
    if hidden:
        found["suppressions"] = [{"kind": "external", "justification": item.suppressed}]
    return found
