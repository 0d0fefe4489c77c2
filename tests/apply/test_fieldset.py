"""Sets of paths: their wire form, their order and their algebra."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.apply.field_set import (
    BadFieldSet,
    FieldSet,
    contains,
    difference,
    includes,
    intersection,
    intersects,
    key_element,
    leaves,
    members,
    parse,
    path_text,
    single,
    text,
    union,
    value_element,
    without_subtrees,
)

SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(max_size=5),
)
ELEMENTS = st.one_of(
    st.text(min_size=1, max_size=4).map(lambda name: f"f:{name}"),
    st.dictionaries(st.sampled_from("ab"), SCALARS, min_size=1).map(key_element),
    SCALARS.map(value_element),
    st.integers(0, 20).map(lambda index: f"i:{index}"),
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SMALL_PATHS = st.lists(st.sampled_from(["f:a", "f:b", 'v:"x"']), min_size=1, max_size=3).map(tuple)


def of(paths: Any) -> FieldSet:
    out: FieldSet = {}
    for path in paths:
        out = union(out, single(path))
    return out


@given(st.lists(PATHS))
def test_a_set_round_trips_through_its_text(paths: list[tuple[str, ...]]) -> None:
    fields = of(paths)

    again = parse(orjson.loads(text(fields)))

    assert again == fields
    assert set(members(again)) == set(paths)


@given(st.lists(SMALL_PATHS), st.lists(SMALL_PATHS))
def test_the_algebra_is_that_of_sets_of_paths(
    left: list[tuple[str, ...]], right: list[tuple[str, ...]]
) -> None:
    a, b = of(left), of(right)
    one, two = set(left), set(right)

    assert set(members(union(a, b))) == one | two
    assert set(members(difference(a, b))) == one - two
    assert set(members(intersection(a, b))) == one & two
    assert set(members(without_subtrees(a, b))) == {
        path for path in one if not any(path[: len(cut)] == cut for cut in two)
    }
    assert set(members(leaves(a))) == {
        path for path in one if not any(p != path and p[: len(path)] == path for p in one)
    }
    assert all(contains(a, path) == (path in one) for path in one | two)
    assert includes(a, b) == (two <= one)
    assert intersects(a, b) == bool(one & two)


@given(st.lists(SMALL_PATHS), st.lists(SMALL_PATHS))
def test_equal_sets_have_one_form(
    left: list[tuple[str, ...]], right: list[tuple[str, ...]]
) -> None:
    a, b = of(left), of(right)

    assert union(a, b) == union(b, a) == of([*right, *left])
    assert difference(union(a, b), b) == difference(a, b)
    assert union(difference(a, b), intersection(a, b)) == a


def test_the_text_puts_itself_then_fields_keys_values_and_indexes() -> None:
    fields = of(
        [
            ("f:spec", "i:10"),
            ("f:spec", "i:2"),
            ("f:spec", "v:10"),
            ("f:spec", "v:9"),
            ("f:spec", 'v:"a"'),
            ("f:spec", 'k:{"port":443}'),
            ("f:spec", 'k:{"port":80}'),
            ("f:spec", "f:b"),
            ("f:spec", "f:a"),
            ("f:spec",),
        ]
    )

    assert text(fields) == (
        '{"f:spec":{".":{},"f:a":{},"f:b":{},"k:{\\"port\\":80}":{},"k:{\\"port\\":443}":{},'
        '"v:9":{},"v:10":{},"v:\\"a\\"":{},"i:2":{},"i:10":{}}}'
    )


def test_elements_are_spelled_in_one_way() -> None:
    raw: dict[str, Any] = {'k:{ "b": 1.0, "a": "<" }': {}, "v: 2.0": {".": {}}, "i:07": {}}

    assert set(parse(raw)) == {'k:{"a":"\\u003c","b":1}', "v:2", "i:7"}
    assert key_element({"b": 1, "a": "<"}) == 'k:{"a":"\\u003c","b":1}'


def test_unknown_kinds_are_forgotten_and_nothing_means_empty() -> None:
    assert parse({"x:y": {}, "f:a": {}}) == {"f:a": {}}
    assert parse(None) == {}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"f": {}}, "key must be 2 characters long:"),
        ({"spec": {}}, "missing colon: spec"),
        ({"i:x": {}}, "invalid literal"),
        ({"v:{": {}}, "unexpected"),
    ],
)
def test_broken_elements_are_refused(raw: Any, problem: str) -> None:
    with pytest.raises(BadFieldSet, match=problem):
        parse(raw)


def test_paths_print_as_upstream_prints_them() -> None:
    path = ("f:spec", 'k:{"port":80,"protocol":"TCP"}', 'v:"a\\"b"', "v:true", "i:3")

    assert path_text(path) == '.spec[port=80,protocol="TCP"][="a\\"b"][=true][3]'


def test_members_come_level_by_level() -> None:
    fields = of([("f:a", "f:x"), ("f:b",), ("f:a",), ("f:b", "f:y")])

    assert list(members(fields)) == [("f:a",), ("f:b",), ("f:a", "f:x"), ("f:b", "f:y")]
