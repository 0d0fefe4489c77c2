"""Renders a rehearsal as JSON.

``render/__init__.py`` calls it for ``--output json``; ``model.py`` defines the results.
"""

from __future__ import annotations

import json
from typing import Any

from instar.tools.rehearsal.go_no_go import GoNoGo
from instar.tools.rehearsal.model import (
    ClientVerdict,
    CrdRehearsal,
    Damages,
    Exchange,
    Rehearsal,
    StepOutcome,
)
from instar.tools.rehearsal.render.shared import step_standing

FORMAT = "instar.dev/rehearsal/v1"


def to_json(rehearsal: Rehearsal, decision: GoNoGo) -> str:
    return json.dumps(as_dict(rehearsal, decision), indent=2, ensure_ascii=False) + "\n"


def as_dict(rehearsal: Rehearsal, decision: GoNoGo) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "go": decision.go,
        "reasons": [{"word": one.word, "text": one.text} for one in decision.reasons],
        "warnings": list(decision.warnings),
        "origin": rehearsal.origin,
        "releases": rehearsal.releases,
        "objects": rehearsal.objects,
        "seconds": round(rehearsal.seconds, 3),
        "crds": [_crd(one) for one in rehearsal.crds],
        "untouched": sorted(rehearsal.untouched),
        "unknown": dict(rehearsal.unknown),
        "assumptions": rehearsal.assumptions,
        "problems": rehearsal.problems,
    }


def _crd(crd: CrdRehearsal) -> dict[str, Any]:
    back = crd.no_return
    return {
        "name": crd.name,
        "objects": crd.objects,
        "readBack": {
            "same": crd.same,
            "differing": crd.differing_count,
            "examples": crd.differing,
        },
        "unknown": dict(crd.unloaded),
        "appliedAtOnce": crd.at_once,
        "noWayBackFrom": None if back is None else back.title,
        "steps": [_step(one) for one in crd.steps],
        "faults": [
            {
                "fault": one.fault,
                "recovered": one.recovered,
                "objects": one.objects,
                "happened": one.happened,
                "evidence": one.evidence,
            }
            for one in crd.faults
        ],
        "load": None if crd.load is None else {**crd.load._asdict(), "basis": [*crd.load.basis]},
    }


def _step(step: StepOutcome) -> dict[str, Any]:
    found: dict[str, Any] = {
        "release": step.release,
        "kind": step.kind,
        "title": step.title,
        "standing": step_standing(step),
        "refused": step.refused,
        "judged": step.judged,
        "judgedAfter": step.again or step.title,
        "troubledBefore": step.before,
        "unknown": dict(step.unknown),
        "objects": _damages(step.damages),
        "damagedEarlier": step.lasting,
        "clients": {name: _client(one) for name, one in sorted(step.clients.items())},
        "wayBack": {
            "way": step.back.way,
            "why": step.back.why,
            "objects": _damages(step.back.losses),
            "newFields": list(step.back.new_fields),
        },
        "seconds": round(step.seconds, 3),
        "requests": step.requests,
    }
    if step.migration is not None:
        found["migration"] = {
            "objects": dict(step.migration.counts),
            "trouble": step.migration.trouble,
            "trimmed": step.migration.trimmed,
            "seconds": round(step.migration.seconds, 3),
        }
    return found


def _damages(found: Damages) -> dict[str, Any]:
    return {
        "counts": {damage.value: number for damage, number in sorted(found.counts.items())},
        "examples": [
            {
                "object": one.key,
                "version": one.version,
                "damage": one.damage,
                "reasons": one.reasons,
                "exchange": _exchange(one.exchange),
                "diff": list(one.diff),
            }
            for one in found.examples
        ],
    }


def _client(one: ClientVerdict) -> dict[str, Any]:
    return {
        "standing": one.standing,
        "requests": one.requests,
        "reasons": one.reasons,
        "evidence": [_exchange(each) for each in one.evidence],
        "basis": one.basis,
    }


def _exchange(one: Exchange | None) -> dict[str, str] | None:
    return None if one is None else one._asdict()
