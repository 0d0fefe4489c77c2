"""JSON patches where kube-apiserver reads a path, an index or a missing value otherwise than the
RFC says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import copy_json
from instar.kube.patches.json_patch import PatchFailed, json_patch, merge_patch

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


def _patched(document: Any, **operation: Any) -> Any:
    if "source" in operation:
        operation["from"] = operation.pop("source")
    return json_patch(copy_json(document), [operation])


def test_what_comes_before_the_first_slash_of_a_path_is_not_read() -> None:
    assert _patched({"a": 1}, op="add", path="x/b", value=2) == {"a": 1, "b": 2}


@pytest.mark.parametrize("op", ["add", "remove", "test", "move", "copy"])
def test_only_replace_and_test_take_the_whole_document(op: str) -> None:
    operation = {"op": op, "path": "", "value": {"a": 1}, "source": "/a"}

    if op == "test":
        assert _patched({"a": 1}, **operation) == {"a": 1}
    else:
        with pytest.raises(PatchFailed):
            _patched({"a": 1}, **operation)


@pytest.mark.parametrize("value", [None, 5, "x", True])
def test_a_document_is_replaced_only_by_a_map_or_list(value: Any) -> None:
    with pytest.raises(PatchFailed, match="must be object or array"):
        _patched({"a": 1}, op="replace", path="", value=value)


@pytest.mark.parametrize(
    ("step", "expected"),
    [("-1", [1, 2, 9]), ("-2", [1, 9, 2]), ("-3", [9, 1, 2]), ("+1", [1, 9, 2]), ("01", [1, 9, 2])],
)
def test_an_index_counts_from_the_end_of_the_list_that_is_made(step: str, expected: Any) -> None:
    assert _patched({"l": [1, 2]}, op="add", path=f"/l/{step}", value=9) == {"l": expected}


@pytest.mark.parametrize("step", ["1_0", " 1", "1 ", "١", "", "-", "x", "-4", "3"])
def test_an_index_is_written_as_go_reads_it(step: str) -> None:
    with pytest.raises(PatchFailed):
        _patched({"l": [1, 2]}, op="replace", path=f"/l/{step}", value=9)


def test_a_missing_member_is_copied_as_null_and_not_moved() -> None:
    assert _patched({}, op="copy", path="/b", source="/a") == {"b": None}
    with pytest.raises(PatchFailed, match="nonexistent key: a"):
        _patched({}, op="move", path="/b", source="/a")


def test_a_test_without_a_value_finds_what_is_missing() -> None:
    assert _patched({}, op="test", path="/a") == {}


@given(_VALUES, _VALUES)
def test_a_merge_leaves_no_null_that_the_patch_brought_into_a_new_place(
    old: Any, patch: Any
) -> None:
    merged = merge_patch({"old": old}, {"new": patch})

    assert merged.get("old") == old
    assert "null" not in _members(merged.get("new"))


def _members(value: Any) -> list[str]:
    """The JSON texts of all members of maps, at any depth."""
    if isinstance(value, dict):
        below = [text for each in value.values() for text in _members(each)]
        return [*map(json.dumps, value.values()), *below]
    return [text for each in value for text in _members(each)] if isinstance(value, list) else []
