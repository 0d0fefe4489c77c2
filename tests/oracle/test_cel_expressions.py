"""Single expressions in the environment of rules: operators, literals, macros, every library."""

from __future__ import annotations

from time import thread_time
from typing import Any

import pytest

from instar.kube.cel.engine import BadExpression, BadProgram, analyse, prepare
from instar.kube.cel.values import CelError
from tests.oracle.cases import Case, Outcome, assert_agreement
from tests.oracle.cel_values import name_of, normal, type_from, value_from, written

LIMIT = 10**9


def judge(case: Case) -> Outcome:
    ours, theirs = _run(case.ask), dict(case.answer)
    if "value" in theirs:
        theirs["value"] = normal(theirs["value"])
    same = ours["stage"] == theirs["stage"] and ours.get("value") == theirs.get("value")
    return Outcome(same, ours == theirs, ours)


def _run(ask: dict[str, Any]) -> dict[str, Any]:
    types = {name: type_from(each) for name, each in ask.get("vars", {}).items()}
    binds = ask.get("binds", {})
    try:
        checked = analyse(ask["expr"], types)
        runner = prepare(checked, tuple(types))
    except BadExpression as error:
        return {"stage": "compile", "error": str(error)}
    except BadProgram as error:
        return {"stage": "program", "error": str(error)}
    values = [value_from(binds[name]) for name in types]
    value, cost = runner.run(values, LIMIT, thread_time() + 10)
    if isinstance(value, CelError):
        return {"stage": "eval", "error": str(value)}
    type_name = name_of(checked.type)
    return {"stage": "ok", "value": written(value), "cost": cost, "type": type_name}


@pytest.mark.parametrize("family", ["cel-language", "cel-library"])
def test_expressions_as_upstream(family: str) -> None:
    assert_agreement(family, judge)
