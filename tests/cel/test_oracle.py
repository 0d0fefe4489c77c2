"""Our engine against Google's C++ one, on generated expressions both can run.

The C++ engine cannot carry Kubernetes rules, but on plain CEL it is right by definition.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from instar.kube.cel.engine import BadExpression, BadProgram
from instar.kube.cel.values import CelError
from tests.cel.support import evaluate

cel = pytest.importorskip("cel_expr_python.cel")
ENV = cel.NewEnv(variables={})


def theirs(source: str) -> Any:
    """The C++ engine's value, or a word for how it failed."""
    try:
        compiled = ENV.compile(source)
    except RuntimeError:
        return "refused"
    value = compiled.eval(data={})
    return "error" if value.type() == cel.Type.ERROR else value.plain_value()


UNORDERED = "NaN values cannot be ordered"
"""Where Google's engines differ: Go's says so, the one in C++ says false."""


def ours(source: str) -> Any:
    try:
        return evaluate(source)
    except BadExpression:
        return "refused"
    except (CelError, BadProgram) as error:
        return UNORDERED if str(error) == UNORDERED else "error"


INTS = st.integers(-20, 20).map(str) | st.sampled_from(
    ["9223372036854775807", "-9223372036854775808"]
)
TEXTS = st.text("ab é", max_size=4).map(lambda text: f"'{text}'")
BOOLS = st.sampled_from(["true", "false"])
DOUBLES = st.sampled_from(["0.0", "1.5", "-2.25", "1e10", "3.0"])


def _join(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map("".join)


def _op(left: st.SearchStrategy[str], operators: list[str]) -> st.SearchStrategy[str]:
    joined = st.tuples(left, st.sampled_from(operators), left)
    return joined.map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})")


def numbers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return _op(inner, ["+", "-", "*", "/", "%"]) | inner.map(lambda text: f"(-{text})")


INT = st.recursive(INTS, numbers, max_leaves=5) | TEXTS.map(lambda text: f"size({text})")
DOUBLE = st.recursive(DOUBLES, lambda inner: _op(inner, ["+", "-", "*", "/"]), max_leaves=3)
TEXT = st.recursive(TEXTS, lambda inner: _op(inner, ["+"]), max_leaves=3)
LIST = st.lists(INTS, max_size=4).map(lambda parts: "[" + ", ".join(parts) + "]")
ATOM = (
    _op(INT, ["==", "!=", "<", "<=", ">", ">="])
    | _op(TEXT, ["==", "!=", "<", "<="])
    | _op(DOUBLE, ["==", "<", ">="])
    | _op(LIST, ["==", "!="])
    | _join(INTS, st.just(" in "), LIST)
    | st.tuples(TEXT, st.sampled_from(["contains", "startsWith", "endsWith"]), TEXT).map(
        lambda parts: f"{parts[0]}.{parts[1]}({parts[2]})"
    )
    | st.tuples(LIST, st.sampled_from(["all", "exists", "exists_one"]), INT).map(
        lambda parts: f"{parts[0]}.{parts[1]}(x, 10 / x > {parts[2]})"
    )
    | _op(st.tuples(LIST, INT).map(lambda p: f"{p[0]}.map(x, x * {p[1]})"), ["=="])
    | _op(st.tuples(LIST, INTS).map(lambda p: f"{p[0]}.filter(x, x > {p[1]})"), ["==", "!="])
    | st.tuples(LIST, INTS).map(lambda p: f"{p[0]}[{p[1]}] > 0")
    | BOOLS
)


def logic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        _op(inner, ["&&", "||", "==", "!="])
        | inner.map(lambda text: f"!({text})")
        | st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} ? {p[1]} : {p[2]})")
    )


@given(st.recursive(ATOM, logic, max_leaves=6))
@settings(max_examples=600, deadline=None)
@example("1 / 0 > 1 || true")
@example("false && 1 / 0 > 1")
@example("[0, 1].exists(x, 10 / x > 5)")
def test_both_engines_agree(source: str) -> None:
    found = ours(source)
    assume(found != UNORDERED)

    assert found == theirs(source)


MIXED = (INTS | TEXTS | BOOLS | DOUBLES | LIST).map(str)


@given(_op(MIXED, ["+", "-", "==", "<", "&&", "in"]))
@settings(max_examples=300, deadline=None)
def test_both_engines_refuse_the_same_types(source: str) -> None:
    """But for mixed numbers, which Kubernetes allows to be compared and C++ does not."""
    if theirs(source) == "refused" and ours(source) in (True, False):
        assert "<" in source
    else:
        assert (ours(source) == "refused") == (theirs(source) == "refused")


@pytest.mark.parametrize(
    "source",
    [
        "int('0x10') == 16", "int('+1') == 1", "int('1_0') == 10",
        "double('1e3') == 1000.0", "double('nan') != 1.0", "double('1_0') == 10.0",
        "double('') == 1.0",
        "string(1.0) == '1'", "string(1e21) == '1e+21'", "string(-0.5) == '-0.5'",
        "bool('TRUE')", "bool('yes')",
        "int(1.9) == 1", "int(-1.9) == -1", "int(1e19) == 1", "uint(-1) == 1u", "uint(1.5) == 1u",
        "duration('1h1.5s') == duration('3601500ms')", "duration('-1s') < duration('0s')",
        "timestamp('2020-02-' + '30T00:00:00Z') > timestamp('2020-01-01T00:00:00Z')",
        "timestamp('2020-01-01T00:00:00.123456789Z').getMilliseconds() == 123",
        "timestamp('2020-01-01T00:00:00Z').getDayOfYear('Asia/Tokyo') == 0",
        "duration('1h') > duration('59m')", "string(duration('90s')) == '90s'",
        "timestamp('0001-01-01T00:00:00Z') - duration('1s') < timestamp('2020-01-01T00:00:00Z')",
        "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "{1: 'a'}[1] == 'a'", "{'a': 1}.all(k, k == 'a')",
        "[1, 2][0] == 1", "[[1], [2]] == [[1], [2]]", "b'abc' < b'abd'", "'é'.size() == 1",
        r"'\u00e9' == 'é'", r"b'\xff'.size() == 1", r"'\101' == 'A'", r"r'\n' == '\\n'",
        "'''a'b''' == \"a'b\"", "type(1) == int", "type(type(1)) == type", "'a' < 'b' == true",
        "5 % -3 == 2", "-5 % 3 == -2", "-5 / 3 == -1", "1.0 / 0.0 > 1.0", "0.0 / 0.0 == 0.0",
        "-9223372036854775808 / -1 == 0", "-9223372036854775808 % -1 == 0",
    ],
)  # fmt: skip
def test_corners_agree(source: str) -> None:
    assert ours(source) == theirs(source)
