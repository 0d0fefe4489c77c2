"""The one equality of JSON values, and its hash."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import (
    copy_json,
    differing,
    is_among,
    json_key,
    same_json,
    same_json_numbers,
)
from instar.kube.api.encoding.json_text import decode, encode_sorted

ALIKE: st.SearchStrategy[Any] = st.sampled_from(
    [True, False, 0, 1, 0.0, -0.0, 1.0, "", "1", None, 10**18, 1e18, 2**63 - 1, float(2**63)]
)
"""Scalars of which several are equal in Python."""
VALUES = st.recursive(
    ALIKE,
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("ab"), below, max_size=2)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("left", "right"),
    [(True, 1), (1, 1.0), (0, False), ("", None), ([], {}), ([True], [1]), ({"a": 1}, {"a": 1.0})],
)
def test_types_count(left: Any, right: Any) -> None:
    assert not same_json(left, right)
    assert json_key(left) != json_key(right)
    assert not is_among(left, [right])


def test_an_absent_member_is_not_null() -> None:
    assert not same_json({"a": 1}, {"a": 1, "b": None})


def test_the_zeros_are_equal_and_the_order_of_members_does_not_matter() -> None:
    assert same_json({"a": 0.0, "b": 1}, {"b": 1, "a": -0.0})


def test_a_number_beyond_64_bits_is_compared_too() -> None:
    assert same_json([10**30], [10**30])
    assert not same_json([10**30], [1e30])


@given(VALUES, VALUES)
def test_values_that_differ_on_the_wire_by_type_are_not_the_same(left: Any, right: Any) -> None:
    """What Go reads from the two texts is equal exactly if ``same_json`` says so; only the sign of
    a zero is written and not compared."""

    def wire(value: Any) -> bytes:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).replace(b"-0.0", b"0.0")

    assert same_json(left, right) == (wire(left) == wire(right))


@given(VALUES, VALUES)
def test_equal_values_have_equal_keys_and_others_do_not(left: Any, right: Any) -> None:
    assert (json_key(left) == json_key(right)) == same_json(left, right)
    assert {json_key(left): 1}.get(json_key(copy_json(left))) == 1


@given(VALUES, VALUES)
def test_the_paths_that_differ_are_none_exactly_for_the_same_value(left: Any, right: Any) -> None:
    assert (not list(differing(left, right))) == same_json(left, right)


@given(VALUES, VALUES)
def test_numbers_of_either_type_are_equal_to_apply(left: Any, right: Any) -> None:
    if same_json(left, right):
        assert same_json_numbers(left, right)
    if same_json_numbers(left, right):
        assert left == right


@given(VALUES)
def test_stored_values_are_read_back_equal_except_whole_floats(value: Any) -> None:
    read = decode(encode_sorted({"a": value}))

    assert same_json_numbers(read, {"a": value})
