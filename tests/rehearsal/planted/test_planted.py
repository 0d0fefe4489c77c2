"""All of the planted breakage is found, at its step, for its object and its client; none else."""

from __future__ import annotations

import pytest

from instar.tools.rehearsal.converting import Converting
from instar.tools.rehearsal.go_no_go import decide
from instar.tools.rehearsal.model import ClientStanding, CrdRehearsal, Way
from tests.rehearsal.planted.cases import CASES, Planted
from tests.rehearsal.worlds import NAME, rehearsed, world


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_planted_defects_are_found_and_nothing_else(case: Planted) -> None:
    before = world(case.old, case.objects, case.uses, case.events)
    module = f"tests.rehearsal.planted.converters:{case.converter}"
    converting = Converting({NAME: module} if case.converter else {}, {})

    report = rehearsed(before, *case.releases, converting=converting)

    (found,) = report.crds
    decision = decide(report)
    assert _damages(found) == {step: dict(rows) for step, rows in case.damages.items()}
    assert _clients(found) == {name: dict(rows) for name, rows in case.clients.items()}
    assert _no_return(found) == case.no_return
    assert {one.fault for one in found.faults if one.recovered is False} == case.faults
    assert {reason.word for reason in decision.reasons} == case.words
    assert decision.go == (not case.words)


def _damages(found: CrdRehearsal) -> dict[object, dict[object, set[str]]]:
    out: dict[object, dict[object, set[str]]] = {}
    for step in found.steps:
        assert step.damages.total == len(step.damages.examples)
        for one in step.damages.examples:
            out.setdefault((step.release, step.kind), {}).setdefault(one.damage, set()).add(one.key)
    return out


def _clients(found: CrdRehearsal) -> dict[str, dict[object, ClientStanding]]:
    out: dict[str, dict[object, ClientStanding]] = {}
    for step in found.steps:
        for name, verdict in step.clients.items():
            if verdict.standing is not ClientStanding.UNAFFECTED:
                out.setdefault(name, {})[step.release, step.kind] = verdict.standing
                assert verdict.reasons
    return out


def _no_return(found: CrdRehearsal) -> object:
    step = found.no_return
    assert all(each.back.way is not Way.UNKNOWN for each in found.steps)
    return None if step is None else (step.release, step.kind)
