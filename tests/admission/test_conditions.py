"""Match conditions: all are evaluated, one that is false outweighs one that fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from instar.kube.admission.match_conditions import Conditions, Matched

VALUES: dict[str, Any] = {
    "object": {"metadata": {"name": "a"}, "spec": {"size": 3}},
    "request": {"operation": "CREATE", "userInfo": {"username": "ann"}, "dryRun": False},
}
MISSING = "expression 'object.spec.nope == 1' resulted in error: no such key: nope"


def matched(*expressions: str, values: dict[str, Any] | None = None) -> Matched:
    return asyncio.run(Conditions(expressions).matched(VALUES if values is None else values))


def test_conditions_that_all_hold_match() -> None:
    assert matched("object.spec.size == 3", "request.userInfo.username == 'ann'") == Matched(True)


def test_empty_conditions_are_falsy() -> None:
    assert not Conditions(())


@pytest.mark.parametrize(
    "expressions",
    [
        ("object.spec.size == 4",),
        ("object.spec.nope == 1", "object.spec.size == 4"),
        ("object.spec.size == 4", "object.spec.nope == 1"),
    ],
)
def test_one_that_is_false_outweighs_one_that_fails(expressions: tuple[str, ...]) -> None:
    assert matched(*expressions) == Matched(False)


def test_failures_are_reported_where_none_is_false() -> None:
    assert matched("object.spec.nope == 1", "object.spec.size == 3") == Matched(False, (MISSING,))


def test_absent_variables_are_null() -> None:
    assert matched("oldObject == null && namespaceObject == null") == Matched(True)
    found = matched("namespaceObject.metadata.name == 'x'")
    assert "no such key: metadata" in found.errors[0]


def test_an_empty_member_of_the_request_is_not_there() -> None:
    assert matched("has(request.name)") == Matched(False)
    assert "no such key: name" in matched("request.name == ''").errors[0]


LOOP = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, {0}))"
HEAVY = LOOP.format(LOOP.format(LOOP.format("a + b >= 0")))


def test_an_expression_that_costs_too_much_is_stopped_and_says_so() -> None:
    found = matched(HEAVY)

    assert found.holds is False
    assert found.errors[0].endswith("operation cancelled: actual cost limit exceeded")


def test_all_conditions_together_have_a_budget() -> None:
    found = matched(HEAVY, HEAVY, HEAVY, HEAVY)

    assert found.errors[-1].startswith("validation failed due to running out of cost budget")


def test_a_heavier_expression_than_the_loop_may_run_is_finished_in_a_thread() -> None:
    assert matched(LOOP.format(LOOP.format("a + b >= 0"))) == Matched(True)
