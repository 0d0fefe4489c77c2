"""Questions that were put to kube-apiserver's own functions, and its answers.

The answers lie beside the checkout (``../shared/oracle``) and are never copied here. A family is
one file of questions; its test says how instar is asked and when an answer counts as the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from instar.base.field_errors import FieldError
from tests.support.shared import SHARED, demand_shared

ORACLE = SHARED / "oracle"
MOST_EXCEPTIONS = 0.005
_SHOWN = 8


class Case(NamedTuple):
    id: str
    ask: dict[str, Any]
    answer: dict[str, Any]


class Outcome(NamedTuple):
    """``verdict``: accepted or refused alike; ``exact``: the same answer to the letter."""

    verdict: bool
    exact: bool
    ours: Any


Judge = Callable[[Case], Outcome]


def cases(family: str) -> list[Case]:
    path = ORACLE / f"{family}.jsonl"
    demand_shared(path)
    with path.open(encoding="utf-8") as lines:
        return [Case(**json.loads(line)) for line in lines]


def assert_agreement(
    family: str,
    judge: Judge,
    exceptions: Mapping[str, str] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> None:
    """Every verdict is upstream's, and every answer but the named ``exceptions``.

    ``left_out`` are questions no CRD or request can put, or another family's; all tables say why.
    """
    known, untold = exceptions or {}, left_out or {}
    asked = cases(family)
    assert untold.keys() <= {case.id for case in asked}, f"{family}: left out, but not there"
    outcomes = [(case, judge(case)) for case in asked if case.id not in untold]
    refused = [(case, found) for case, found in outcomes if not found.verdict]
    assert not refused, _told("verdicts", family, refused)
    inexact = [(case, found) for case, found in outcomes if not found.exact]
    unexpected = [(case, found) for case, found in inexact if case.id not in known]
    assert not unexpected, _told("answers", family, unexpected)
    healed = known.keys() - {case.id for case, _ in inexact}
    assert not healed, f"{family}: no longer exceptions: {sorted(healed)}"
    assert len(known) <= max(1, MOST_EXCEPTIONS * len(asked)), f"{family}: too many exceptions"


def _told(what: str, family: str, found: list[tuple[Case, Outcome]]) -> str:
    lines = [f"{family}: {len(found)} other {what}"]
    for case, outcome in found[:_SHOWN]:
        lines += [f"  {case.id}", f"    upstream {case.answer}", f"    instar   {outcome.ours}"]
    return "\n".join(lines)


def error_rows(errors: Iterable[FieldError]) -> Counter[tuple[str, str, str]]:
    """Errors as the oracle counts them: without order."""
    causes = [error.cause() for error in errors]
    return Counter((cause["reason"], cause["field"], cause["message"]) for cause in causes)


def recorded_rows(errors: Iterable[Mapping[str, str]]) -> Counter[tuple[str, str, str]]:
    return Counter((error["type"], error["field"], error["message"]) for error in errors)


def judge_errors(case: Case, errors: Iterable[FieldError]) -> Outcome:
    ours, theirs = error_rows(errors), recorded_rows(case.answer["errors"])
    return Outcome(bool(ours) == bool(theirs), ours == theirs, sorted(ours.elements()))
