"""Parser and checker: what compiles, and how a refusal reads."""

from __future__ import annotations

import pytest

from instar.kube.cel.engine import BadExpression, analyse
from instar.kube.cel.types import BOOL, DYN, INT, STRING, list_of, map_of, optional_of
from instar.kube.cel.values import CostExceeded
from tests.cel.support import evaluate

VARIABLES = {
    "s": STRING,
    "i": INT,
    "d": DYN,
    "l": list_of(INT),
    "m": map_of(STRING, INT),
    "o": optional_of(INT),
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r'"a\n\t\\\"\x41\u00e9\101"', 'a\n\t\\"AéA'),
        (r'r"a\n"', r"a\n"),
        ('"""multi\nline"""', "multi\nline"),
        (r'b"\xff\377a"', b"\xff\xffa"),
        ("0x1F", 31),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-9223372036854775808", -(2**63)),
        ("1 + 2 * 3 - 4 / 2", 5),
        ("1 - 2 - 3", -4),
        ("!!true", True),
        ("--1", 1),
        ("true ? 1 : false ? 2 : 3", 1),
        ("1 < 2 == true", True),
        ("[1, 2, 3,]", [1, 2, 3]),
        ("{'a': 1,}", {"a": 1}),
        ("1 // comment\n + 1", 2),
        ("true || 1 / 0 == 1", True),
        ("1 / 0 == 1 || true", True),
        ("false && 1 / 0 == 1", False),
        ("1 / 0 == 1 && false", False),
        ("[[1, 2], [3]].map(x, x.map(y, y + x.size()))", [[3, 4], [4]]),
    ],
)
def test_literals_and_precedence(source: str, expected: object) -> None:
    assert evaluate(source) == expected


PRIMARY = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
    "STRING, BYTES, IDENTIFIER}"
)


def test_an_empty_expression_is_refused_at_column_0_as_upstream() -> None:
    with pytest.raises(BadExpression) as caught:
        analyse("", VARIABLES)

    text = f"Syntax error: mismatched input '<EOF>' expecting {PRIMARY}"
    assert str(caught.value) == f"ERROR: <input>:1:0: {text}"


@pytest.mark.parametrize(
    ("source", "column", "text"),
    [
        ("x == 1", 1, "undeclared reference to 'x' (in container '')"),
        ("i.foo() == 1", 6, "undeclared reference to 'foo' (in container '')"),
        ("s == 1", 3, "found no matching overload for '_==_' applied to '(string, int)'"),
        ("s == null", 3, "found no matching overload for '_==_' applied to '(string, null)'"),
        ("1 == 1.0", 3, "found no matching overload for '_==_' applied to '(int, double)'"),
        ("i + 's' == 1", 3, "found no matching overload for '_+_' applied to '(int, string)'"),
        ("s.contains(1)", 11,
         "found no matching overload for 'contains' applied to 'string.(int)'"),
        ("size(i) == 1", 5, "found no matching overload for 'size' applied to '(int)'"),
        ("[1, 's'] == l", 5, "expected type 'int' but found 'string'"),
        ("s.foo == 1", 2, "type 'string' does not support field selection"),
        ("i.all(x, true)", 1, "expression of type 'int' cannot be range of a comprehension "
         "(must be list, map, or dynamic)"),
        ("l.all(x, x)", 10, "expected type 'bool' but found 'int'"),
        ("duration('zz') == duration('1s')", 10, "invalid duration argument"),
        ("timestamp('zz') == timestamp('1s')", 11, "invalid timestamp argument"),
        ("s.matches('[')", 11, "invalid matches argument"),
        ("1 +", 4, f"Syntax error: mismatched input '<EOF>' expecting {PRIMARY}"),
        ("i i", 3, "Syntax error: extraneous input 'i' expecting <EOF>"),
        ("namespace == 1", 1, "reserved identifier: namespace"),
        ("has(s)", 5, "invalid argument to has() macro"),
        ("9223372036854775808 == 1", 1, "invalid int literal"),
        ("'open", 1, "Syntax error: token recognition error at: ''open'"),
        ("Foo{a: 1} == 1", 4, "undeclared reference to 'Foo' (in container '')"),
    ],
)  # fmt: skip
def test_refusals_name_the_place_like_upstream(source: str, column: int, text: str) -> None:
    with pytest.raises(BadExpression) as caught:
        analyse(source, VARIABLES)

    first = str(caught.value).split("\nERROR")[0]
    caret = "." * (column - 1) + "^"
    assert first == f"ERROR: <input>:1:{column}: {text}\n | {source}\n | {caret}"


def test_all_issues_are_reported_with_their_own_lines() -> None:
    with pytest.raises(BadExpression) as caught:
        analyse("a == 1 &&\n  b == 2", {})

    assert str(caught.value) == (
        "ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n"
        " | a == 1 &&\n | ^\n"
        "ERROR: <input>:2:3: undeclared reference to 'b' (in container '')\n"
        " |   b == 2\n | ..^"
    )


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("i == 1", "bool"),
        ("d", "dyn"),
        ("d + 1", "int"),
        ("d.a.b", "dyn"),
        ("l.map(x, string(x))", "list(string)"),
        ("m.filter(k, true)", "list(string)"),
        ("m.transformMap(k, v, string(v))", "map(string, string)"),
        ("l.transformMapEntry(i, v, {string(v): i})", "map(string, int)"),
        ("[]", "list(dyn)"),
        ("true ? [] : [1]", "list(int)"),
        ("o.optMap(x, string(x))", "optional_type(string)"),
        ("m.?a", "optional_type(int)"),
        ("l[?0]", "optional_type(int)"),
        ("type(i)", "type(int)"),
        ("l.first()", "optional_type(int)"),
        ("[l, [1]].flatten()", "list(int)"),
        ("i == 1 ? 'a' : s", "string"),
    ],
)
def test_result_types(source: str, shown: str) -> None:
    assert str(analyse(source, VARIABLES).type) == shown


def test_variables_are_found_only_where_they_are_read() -> None:
    checked = analyse("l.all(s, s > 0) && i == 1", VARIABLES)

    assert checked.variables == {"l", "i"}
    assert checked.type == BOOL


@pytest.mark.parametrize(
    "source",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "[" * 5000 + "]" * 5000,
        "1" + "+1" * 5000 + " == 1",
        "d" + ".a" * 5000,
        "d" + "[0]" * 5000,
        "!(" * 5000 + "true" + ")" * 5000,
        "true ? " * 5000 + "true",
        "a" * 100_001,
    ],
)
def test_monsters_are_refused_without_a_stack_overflow(source: str) -> None:
    with pytest.raises(BadExpression):
        analyse(source, VARIABLES)


def test_long_chains_are_fine() -> None:
    assert evaluate(" && ".join(["true"] * 3000)) is True
    assert evaluate("!" * 5001 + "false") is True
    assert evaluate("1" + "+1" * 140) == 141


def test_a_loop_stops_at_its_budget() -> None:
    twenty = "[" + ",".join(str(n) for n in range(20)) + "]"
    nested = f"{twenty}.all(a, {twenty}.all(b, {twenty}.all(c, {twenty}.all(d, a+b+c+d >= 0))))"

    with pytest.raises(CostExceeded):
        evaluate(nested, limit=50_000)
