"""Nesting: upstream's limits, counted as it counts them, and no stack that could overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from instar.kube.cel.checking.cost_estimate import estimate
from instar.kube.cel.checking.cost_ranges import MOST
from instar.kube.cel.engine import BadExpression, BadProgram, analyse, prepare
from instar.kube.cel.types import BOOL, DYN, INT, list_of, optional_of
from instar.kube.cel.values import CostExceeded, OptionalValue
from tests.cel.support import errors, spec
from tests.support.counting import calls_of

VARIABLES = {"b": BOOL, "i": INT, "l": list_of(INT), "d": DYN, "o": optional_of(INT)}
VALUES = (True, 1, [0], {"x": 1}, OptionalValue(True, 1))
Nested = Callable[[int], str]


def nested(around: Callable[[str], str], inner: str) -> Nested:
    def build(levels: int) -> str:
        text = inner
        for _ in range(levels):
            text = around(text)
        return text

    return build


def run(source: str) -> Any:
    checked = analyse(source, VARIABLES)
    estimate(checked, lambda _path: None)
    return prepare(checked, tuple(VARIABLES)).run(VALUES, 10**9, float("inf"))[0]


DEEP: dict[str, Nested] = {
    "lists": lambda n: "[" * n + "1" + "]" * n + ".size() == 1",
    "maps": nested(lambda inner: f"{{'a': {inner}}}.size()", "1"),
    "calls": nested(lambda inner: f"string({inner})", "'a'"),
    "methods": lambda n: "'a'" + ".trim()" * n,
    "negations": nested(lambda inner: f"!({inner})", "b"),
    "choices": lambda n: "b ? b : " * n + "b",
    "choices of choices": nested(lambda inner: f"({inner}) ? b : b", "b"),
    "comparisons": lambda n: "b" + " == b" * n,
    "sums": lambda n: "i" + " + i" * n,
    "brackets": lambda n: "(" * n + "b" + ")" * n,
    "conjunctions": lambda n: "b" + " && b" * n * 40,
    "indexes": nested(lambda inner: f"l[{inner}]", "0"),
    "quantifiers": nested(lambda inner: f"l.all(x, {inner})", "b"),
    "chained loops": lambda n: "l" + ".map(x, x)" * n,
    "equal lists": lambda n: f"{'[' * n}1{']' * n} == {'[' * n}1{']' * n}",
}


@pytest.mark.parametrize("what", DEEP)
def test_two_hundred_levels_of_anything_are_run(what: str) -> None:
    run(DEEP[what](200))


LIMITS = [
    ("comparisons", 250, "max recursion depth exceeded"),
    ("methods", 250, "max recursion depth exceeded"),
    ("brackets", 249, "expression recursion limit exceeded: 250"),
    ("calls", 249, "expression recursion limit exceeded: 250"),
    ("choices", 249, "expression recursion limit exceeded: 250"),
]


@pytest.mark.parametrize(("what", "most", "text"), LIMITS)
def test_one_level_more_than_upstream_takes_is_refused_in_its_words(
    what: str, most: int, text: str
) -> None:
    analyse(DEEP[what](most), VARIABLES)
    with pytest.raises(BadExpression) as refused:
        analyse(DEEP[what](most + 1), VARIABLES)

    assert str(refused.value) == f"ERROR: <input>:-1:0: {text}"


def test_a_chain_of_optionals_doubles_its_cost_but_not_the_work() -> None:
    def work(times: int) -> None:
        checked = analyse("o" + ".optMap(x, x)" * times + ".hasValue()", VARIABLES)
        assert estimate(checked, lambda _path: None).high == MOST
        with pytest.raises(CostExceeded):
            prepare(checked, tuple(VARIABLES)).run(VALUES, 10**9, float("inf"))

    work(200)
    assert calls_of(lambda: work(200)) < 3 * calls_of(lambda: work(100))


def test_expressions_too_deep_for_python_are_refused_before_they_run() -> None:
    source = nested(lambda inner: f"o.optMap(y, {inner})", "1")(240) + ".hasValue()"

    with pytest.raises(BadProgram, match="nested more than 600 levels deep"):
        prepare(analyse(source, VARIABLES), tuple(VARIABLES))


def test_data_too_deep_to_compare_is_an_error_of_the_rule() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    schema = spec(
        {"x": {"type": "integer"}},
        **{
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
        },
    )

    (found,) = errors(schema, {"x": 1, "u": deep}, {"x": 1, "u": {"a": deep}})

    assert "no further validation rules will be run" in found
