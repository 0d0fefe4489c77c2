"""What two states of an object say about the write between them."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from instar.kube.history.writes import ObjectState, changed_paths, writes_between


def _entry(manager: str, time: str, fields: str = "a", **more: str) -> Object:
    head = {"manager": manager, "operation": "Update", "time": time, **more}
    return {**head, "fieldsV1": {f"f:{fields}": {}}}


def _obj(*managed: Object, **spec: Any) -> Object:
    metadata = {"name": "x", "creationTimestamp": "T0", "managedFields": list(managed)}
    return {"apiVersion": "example.com/v1", "kind": "X", "metadata": metadata, "spec": spec}


def test_the_writer_is_the_manager_whose_entry_has_a_new_time() -> None:
    old = _obj(_entry("one", "T1", "a"), a=1)
    new = _obj(_entry("one", "T1", "b"), _entry("two", "T2", "a"), a=2)

    [row] = writes_between([ObjectState(7, "v1", new)], ObjectState(6, "v1", old))

    assert [each["manager"] for each in row["managers"]] == ["two"]
    assert (row["operation"], row["time"], row["changes"]) == ("update", "T2", ["spec.a"])


def test_two_writes_within_a_second_are_distinguished_by_their_fields() -> None:
    old, new = _obj(_entry("one", "T1", "a"), a=1), _obj(_entry("one", "T1", "b"), a=1, b=1)

    [row] = writes_between([ObjectState(7, "v1", new)], ObjectState(6, "v1", old))

    assert [each["manager"] for each in row["managers"]] == ["one"]


def test_creations_deletions_and_earlier_objects_are_distinguished() -> None:
    state = ObjectState(5, "v1", _obj(a=1))
    waiting = _obj(a=1)
    waiting["metadata"]["deletionTimestamp"] = "T9"
    states = [
        state,
        ObjectState(6, "v1", waiting),
        ObjectState(7, "", None),
        ObjectState(8, "v1", _obj(a=2)),
    ]

    unknown = writes_between([state], None)
    known = writes_between(states, ObjectState(0, "", None))

    assert unknown[0]["operation"] == "earliest"
    assert [row["operation"] for row in known] == ["create", "update", "delete", "create"]
    assert [row["time"] for row in known] == ["T0", None, "T9", "T0"]


def test_a_state_that_cannot_be_shown_says_why_and_the_next_is_an_update() -> None:
    broken = ObjectState(6, "v0", None, "no such version")

    first, second = writes_between([broken, ObjectState(7, "v1", _obj())], ObjectState(0, "", None))

    assert first["problem"] == "no such version"
    assert second["operation"] == "update"


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b"]),
        ({"a": 1}, {}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({"a": [1, {"b": 1}]}, {"a": [1, {"b": 2}]}, ["a[1].b"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({"a": {}}, {"a": []}, ["a"]),
    ],
)
def test_changes_are_named_by_their_path(old: Any, new: Any, paths: list[str]) -> None:
    assert list(changed_paths(old, new)) == paths
