"""Rules of a schema on one object: what they say, and what that costs."""

from __future__ import annotations

from instar.base.field_errors import FieldError
from instar.kube.schema.cel_rules.compile import build
from instar.kube.schema.cel_rules.evaluate import CALL_LIMIT, OBJECT_BUDGET, Budget, CelProgram
from instar.kube.schema.structure.parse import structural
from tests.oracle.cases import Case, Outcome, assert_agreement, error_rows, recorded_rows


def judge(case: Case) -> Outcome:
    ask, answer = case.ask, case.answer
    tree = build(structural(ask["schema"]), root=ask["root"])
    start = ask.get("budget", OBJECT_BUDGET)
    budget = Budget(start, ask.get("limit", CALL_LIMIT))
    errors: list[FieldError] = []
    warnings: list[str] = []
    if tree is not None:
        old, ratchet = ask.get("oldObject"), ask.get("ratchet", False)
        program = CelProgram(tree)
        errors, warnings = program.evaluate_at("root", ask["object"], old, budget, ratchet=ratchet)
    cost = start - budget.remaining if budget.remaining >= 0 else None
    ours, theirs = error_rows(errors), recorded_rows(answer["errors"])
    same = ours == theirs and sorted(warnings) == sorted(answer["warnings"])
    shown = (sorted(ours.elements()), warnings, cost)
    return Outcome(bool(ours) == bool(theirs), same and cost == answer["cost"], shown)


def test_rules_run_as_upstream() -> None:
    assert_agreement("cel-run", judge)
