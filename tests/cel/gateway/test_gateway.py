"""Gateway API's own rules on objects written by hand: the right verdict, the rule's own words."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.schema.defaulting import compile_defaulter
from instar.kube.schema.validation.validate import compile_validator
from tests.cel.gateway.case import Case
from tests.cel.gateway.gateways import CASES as OTHERS
from tests.cel.gateway.httproutes import CASES as ROUTES
from tests.cel.support import gateway_schema, program

RELEASE = "v1.6.0"
CASES = [*ROUTES, *OTHERS]


def written(case: Case, spec: dict[str, Any]) -> dict[str, Any]:
    """The object as the server sees it: with defaults, and valid but for its rules."""
    obj: dict[str, Any] = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}}
    obj["spec"] = spec
    if case.status is not None:
        obj["status"] = case.status
    schema = gateway_schema(case.plural, release=RELEASE)
    fill = compile_defaulter(schema)
    if fill is not None:
        fill(obj)
    assert compile_validator(schema).validate(obj) == []
    return obj


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.plural}:{case.name}")
def test_verdict_and_message(case: Case) -> None:
    rules = program(gateway_schema(case.plural, release=RELEASE))
    old = None if case.old is None else written(case, case.old)

    outcome = rules.evaluate(written(case, case.spec), old)

    assert [str(error) for error in outcome.errors] == ([case.expected] if case.expected else [])


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60
    assert sum(1 for case in CASES if not case.expected) >= 10
