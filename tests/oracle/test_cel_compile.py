"""Rules at the top of a schema: do they compile, and what are they estimated to cost."""

from __future__ import annotations

from typing import Any

from instar.kube.schema.cel_rules.check import most_occurrences
from instar.kube.schema.cel_rules.compile import (
    CompiledRule,
    compile_rule,
    declaration_of,
    type_key,
)
from instar.kube.schema.structure.parse import structural
from tests.oracle.cases import Case, Outcome, assert_agreement

UNBOUNDED = 2**64 - 1


def judge(case: Case) -> Outcome:
    node = structural(case.ask["schema"])
    key = type_key(node, root=case.ask["root"])
    declared = declaration_of(key)
    times = 0 if declared is None else most_occurrences(declared)
    ours = [_shown(compile_rule(rule, key), times) for rule in node.rules]
    theirs = case.answer["rules"]
    verdict = [_verdict(each) for each in ours] == [_verdict(each) for each in theirs]
    return Outcome(verdict, ours == theirs, ours)


def _verdict(rule: dict[str, Any]) -> tuple[bool, bool]:
    return rule["error"] is None, "messageError" in rule


def _shown(compiled: CompiledRule, times: int) -> dict[str, Any]:
    condition, message = compiled.condition, compiled.message
    works = condition.runner is not None
    out: dict[str, Any] = {
        "error": condition.problem or None,
        "usesOldSelf": condition.uses_old,
        "cost": _cost(condition.cost),
        "cardinality": times if works else 0,
    }
    if message is not None and message.problem:
        out["messageError"] = message.problem
    elif message is not None and message.cost:
        out["messageCost"] = _cost(message.cost)
    if works and compiled.field_path:
        out["fieldPath"] = compiled.field_path
    return out


def _cost(cost: int) -> Any:
    return "unbounded" if cost >= UNBOUNDED else cost


def test_rules_compile_as_upstream() -> None:
    assert_agreement("cel-compile", judge)
