"""JSON patch and merge patch on plain values."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.patches.json_patch import PatchFailed, TestFailed, json_patch, merge_patch

values = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@given(
    st.dictionaries(st.sampled_from("abc"), values), st.dictionaries(st.sampled_from("abc"), values)
)
def test_merging_a_patch_twice_changes_nothing_more(target: Any, patch: Any) -> None:
    before = copy.deepcopy(target)
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert target == before


def test_the_result_of_a_merge_patch_shares_nothing_with_the_patch() -> None:
    patch = {"a": [{"b": 1}], "c": {"d": [1]}}

    made = merge_patch({"c": {"e": 1}}, patch)
    made["a"][0]["b"] = 2
    made["c"]["d"].append(2)

    assert patch == {"a": [{"b": 1}], "c": {"d": [1]}}


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/b", "value": 2}], {"a": [1, 2], "b": 2}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/x", "value": 1}], {"a": [1, 2], "x": 1}),
        ([{"op": "move", "from": "/a", "path": "/c"}], {"c": [1, 2]}),
        ([{"op": "copy", "from": "/a", "path": "/c"}], {"a": [1, 2], "c": [1, 2]}),
        ([{"op": "test", "path": "/a/0", "value": 1}], {"a": [1, 2]}),
        ([{"op": "add", "path": "/m~1n", "value": 1}], {"a": [1, 2], "m/n": 1}),
        ([], {"a": [1, 2]}),
    ],
)
def test_json_patch_operations(operations: list[dict[str, Any]], result: Any) -> None:
    assert json_patch({"a": [1, 2]}, operations) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 1},
        {"op": "test", "path": "/a/0", "value": True},
        {"op": "remove", "path": "/nope"},
        {"op": "add", "path": "/nope/deep", "value": 1},
        {"op": "add", "path": "/a/9", "value": 1},
        {"op": "replace", "path": "/a/7", "value": 1},
        {"op": "frobnicate", "path": "/a"},
        {"op": "move", "path": "/a"},
        {"op": "add", "value": 1},
        {"op": "add", "path": "no-slash", "value": 1},
    ],
)
def test_json_patch_that_does_not_fit_fails(operation: dict[str, Any]) -> None:
    with pytest.raises(PatchFailed):
        json_patch({"a": [1, 2]}, [operation])


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (
            {"op": "add", "path": "/spec/m/k", "value": 1},
            'add operation does not apply: doc is missing path: "/spec/m/k": missing value',
        ),
        (
            {"op": "remove", "path": "/spec/nope"},
            "error in remove for path: '/spec/nope': Unable to remove nonexistent key: nope: "
            "missing value",
        ),
        (
            {"op": "replace", "path": "/spec/l/4", "value": 1},
            "replace operation does not apply: doc is missing key: /spec/l/4: missing value",
        ),
        (
            {"op": "add", "path": "/spec/l/x", "value": 1},
            "error in add for path: '/spec/l/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            {"op": "remove", "path": "/spec/l/4"},
            "error in remove for path: '/spec/l/4': Unable to access invalid index: 4: invalid "
            "index referenced",
        ),
        (
            {"op": "copy", "from": "/x/y", "path": "/z"},
            "copy operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (
            {"op": "test", "path": "/spec/a", "value": 2},
            "testing value /spec/a failed: test failed",
        ),
        ({"op": "frob", "path": "/a"}, "Unexpected kind: frob"),
    ],
)
def test_a_patch_says_why_it_does_not_fit(operation: dict[str, Any], text: str) -> None:
    with pytest.raises(PatchFailed) as failed:
        json_patch({"spec": {"a": 1, "l": [1]}}, [operation])

    assert str(failed.value) == text
    assert isinstance(failed.value, TestFailed) == (operation["op"] == "test")
