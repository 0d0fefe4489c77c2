"""Renders a report as JSON, and the JSON Schema that describes it.

``render/__init__.py`` calls it for ``--output json``, with a ``Report``.
"""

from __future__ import annotations

import json
from typing import Any

from instar.base.json_values import Pointer
from instar.tools.reviewer.report import (
    CrdReview,
    Finding,
    Hit,
    ObjectVerdict,
    Report,
    Severity,
    Witness,
)

FORMAT = "instar.dev/review/v1"


def to_json(report: Report) -> str:
    return json.dumps(as_dict(report), indent=2, ensure_ascii=False, default=str) + "\n"


def as_dict(report: Report) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "summary": {
            severity.value: report.count(severity)
            for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO)
        },
        "crds": [_crd(item) for item in report.crds],
        "onlyOld": list(report.only_old),
        "onlyNew": list(report.only_new),
        "problems": [
            {"message": item.message, "file": item.file, "line": item.line}
            for item in report.problems
        ],
    }


def finding_dict(item: Finding) -> dict[str, Any]:
    found: dict[str, Any] = {
        "rule": item.rule,
        "severity": item.severity.value,
        "version": item.version,
        "path": item.path,
        "message": item.message,
        "hits": [hit.value for hit in item.hits],
        "schemaPath": json_pointer(item.pointer),
        "side": "old" if item.on_old else "new",
        "file": item.file,
        "line": item.line,
        "fingerprint": item.fingerprint,
    }
    if item.details:
        found["details"] = item.details
    if item.witness is not None:
        found["witness"] = _witness(item.witness)
    elif item.unwitnessed:
        found["unwitnessed"] = item.unwitnessed
    if item.suppressed:
        found["suppressed"] = item.suppressed
    return found


def json_pointer(pointer: Pointer) -> str:
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in pointer)


def _crd(crd: CrdReview) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": crd.name,
        "findings": [finding_dict(item) for item in crd.findings],
        "suppressed": [finding_dict(item) for item in crd.suppressed],
        "plan": [
            {
                "release": step.release,
                "title": step.title,
                "why": step.why,
                "preconditions": list(step.preconditions),
                "commands": list(step.commands),
                "rollback": step.rollback,
            }
            for step in crd.plan
        ],
        "checklist": [
            {"question": item.question, "answer": item.yes, "evidence": item.evidence}
            for item in crd.checklist
        ],
        "stored": {
            "tried": crd.stored_count,
            "objects": [
                {
                    "name": item.name,
                    "version": item.version,
                    "outcome": item.damage,
                    "reasons": list(item.reasons),
                }
                for item in crd.stored
            ],
        },
    }
    if crd.label:
        found["step"] = crd.label
    return found


def _witness(item: Witness) -> dict[str, Any]:
    found: dict[str, Any] = {
        "effect": item.effect.value,
        "version": item.version,
        "object": item.object,
        "old": _verdict(item.old),
        "new": _verdict(item.new),
    }
    if item.new_version:
        found["targetVersion"] = item.new_version
    if item.through_status:
        found["throughStatus"] = True
    if item.before is not None:
        found["before"] = item.before
    return found


def _verdict(item: ObjectVerdict) -> dict[str, Any]:
    return {
        "accepted": item.accepted,
        "errors": list(item.texts),
        "pruned": list(item.pruned),
    }


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": sorted(required),
        "properties": {**required, **optional},
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def json_schema() -> dict[str, Any]:
    """Return the schema of ``--output json``, published by ``instar review --report-schema``."""
    text, number, flag = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
    severities = [Severity.ERROR.value, Severity.WARNING.value, Severity.INFO.value]
    verdict = _object({"accepted": flag, "errors": _list(text), "pruned": _list(text)})
    witness = _object(
        {
            "effect": text,
            "version": text,
            "object": {"type": "object"},
            "old": verdict,
            "new": verdict,
        },
        targetVersion=text,
        throughStatus=flag,
        before={"type": "object"},
    )
    finding = _object(
        {
            "rule": text,
            "severity": {"enum": severities},
            "version": text,
            "path": text,
            "message": text,
            "hits": _list({"enum": [hit.value for hit in Hit]}),
            "schemaPath": text,
            "side": {"enum": ["old", "new"]},
            "file": text,
            "line": number,
            "fingerprint": text,
        },
        details=text,
        witness=witness,
        unwitnessed=text,
        suppressed=text,
    )
    step = _object(
        {
            "release": text,
            "title": text,
            "why": text,
            "preconditions": _list(text),
            "commands": _list(text),
            "rollback": text,
        }
    )
    answer = _object({"question": text, "answer": flag, "evidence": text})
    stored = _object({"name": text, "version": text, "outcome": text, "reasons": _list(text)})
    crd = _object(
        {
            "name": text,
            "findings": _list(finding),
            "suppressed": _list(finding),
            "plan": _list(step),
            "checklist": _list(answer),
            "stored": _object({"tried": number, "objects": _list(stored)}),
        },
        step=text,
    )
    problem = _object({"message": text, "file": text, "line": number})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "instar review",
        **_object(
            {
                "format": {"const": FORMAT},
                "summary": _object(dict.fromkeys(severities, number)),
                "crds": _list(crd),
                "onlyOld": _list(text),
                "onlyNew": _list(text),
                "problems": _list(problem),
            }
        ),
    }
