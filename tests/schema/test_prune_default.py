"""Unknown fields go, forbidden nulls go, defaults come."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.schema.compiled import compile_schema

PRESERVE = "x-kubernetes-preserve-unknown-fields"
TEXT = {"type": "string"}


def pruned(schema: dict[str, Any], value: Any) -> tuple[Any, list[str]]:
    obj = {"f": value}
    paths = compile_schema({"type": "object", "properties": {"f": schema}}).prune_reporting(obj)
    return obj["f"], paths


CASES: list[tuple[dict[str, Any], Any, Any, list[str]]] = [
    ({"type": "object", "properties": {"a": TEXT}}, {"a": "1", "z": 1}, {"a": "1"}, ["f.z"]),
    ({"type": "object"}, {"a": 1}, {}, ["f.a"]),
    (
        {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": TEXT}}},
        {"k.1": {"r": 1}},
        {"k.1": {}},
        ["f.k.1.r"],
    ),
    ({"type": "object", "additionalProperties": True}, {"a": {"b": 1}}, {"a": {}}, ["f.a.b"]),
    ({"type": "array"}, [{"a": 1}, 2], [{}, 2], ["f[0].a"]),
    (
        {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
        [{"a": "1"}, {"b": 1}],
        [{"a": "1"}, {}],
        ["f[1].b"],
    ),
    (
        {"type": "object", PRESERVE: True, "properties": {"a": {"type": "object"}}},
        {"a": {"b": 1}, "c": {"d": 1}},
        {"a": {}, "c": {"d": 1}},
        ["f.a.b"],
    ),
    (
        {"type": "object", PRESERVE: True, "properties": {}},
        {"a": [{"b": 1}]},
        {"a": [{"b": 1}]},
        [],
    ),
    (
        {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": TEXT}},
        {"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "z": 1},
        {"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}},
        ["f.z"],
    ),
    ({"type": "string"}, {"a": 1}, {}, ["f.a"]),
    ({"type": "object", "properties": {"a": TEXT}}, "scalar", "scalar", []),
    ({"type": "object", "anyOf": [{"properties": {"a": {}}}]}, {"a": 1}, {}, ["f.a"]),
]


@pytest.mark.parametrize(("schema", "value", "left", "paths"), CASES)
def test_pruning_keeps_specified_fields(
    schema: dict[str, Any], value: Any, left: Any, paths: list[str]
) -> None:
    assert pruned(schema, value) == (left, paths)


def test_pruned_paths_are_sorted_as_plain_text() -> None:
    obj = {"b": 1, "a": 1, "spec": {"z": 1}}
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}

    assert compile_schema(schema).prune_reporting(obj) == ["a", "b", "spec.z"]


def test_the_root_keeps_its_meta_fields() -> None:
    obj = {"apiVersion": "v1", "kind": "K", "metadata": {"zzz": 1}, "spec": {}}

    compile_schema(None).prune(obj)

    assert obj == {"apiVersion": "v1", "kind": "K", "metadata": {"zzz": 1}}


def test_preserving_everything_prunes_and_drops_nothing() -> None:
    compiled = compile_schema({"type": "object", "properties": {"a": TEXT}}, preserve_unknown=True)
    obj = {"a": None, "x": {"y": 1}}

    compiled.drop_nulls(obj)

    assert compiled.prune_reporting(obj) == []
    assert obj == {"a": None, "x": {"y": 1}}


def completed(schema: dict[str, Any], value: Any) -> Any:
    compiled = compile_schema({"type": "object", "properties": {"f": schema}})
    obj = {"f": value}
    compiled.drop_nulls(obj)
    compiled.default(obj)
    return obj.get("f", "gone")


INT = {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "value", "result"),
    [
        (INT, None, "gone"),
        ({**INT, "default": 5}, None, 5),
        ({**INT, "nullable": True}, None, None),
        ({**INT, "nullable": True, "default": 5}, None, None),
        ({"type": "array", "items": {**INT, "default": 5}}, [None, 1], [5, 1]),
        ({"type": "array", "items": INT}, [None, 1], [None, 1]),
        (
            {"type": "object", "additionalProperties": {**INT, "default": 5}},
            {"a": None},
            {"a": 5},
        ),
        ({"type": "object", "additionalProperties": INT}, {"a": None}, {}),
        ({"type": "object", PRESERVE: True}, {"a": None}, {"a": None}),
        ({"type": "object", "properties": {"a": {**INT, "default": 1}}}, {}, {"a": 1}),
        ({"type": "object", "properties": {"a": {**INT, "default": 1}}}, "text", "text"),
        (
            {
                "type": "object",
                "properties": {
                    "o": {
                        "type": "object",
                        "default": {},
                        "properties": {"a": {**INT, "default": 1}},
                    }
                },
            },
            {},
            {"o": {"a": 1}},
        ),
        (
            {
                "type": "object",
                "properties": {"o": {"type": "object", "properties": {"a": {**INT, "default": 1}}}},
            },
            {},
            {},
        ),
        (
            {
                "type": "object",
                "properties": {
                    "o": {"type": "object", "default": {"x": 1}, "properties": {"a": INT}}
                },
            },
            {},
            {"o": {}},
        ),
    ],
)
def test_nulls_and_defaults(schema: dict[str, Any], value: Any, result: Any) -> None:
    assert completed(schema, value) == result


def test_each_object_gets_its_own_copy_of_a_default() -> None:
    schema = {"type": "object", "properties": {"l": {"type": "array", "default": [], "items": INT}}}
    compiled = compile_schema(schema)
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}

    compiled.default(first)
    first["l"].append(1)
    compiled.default(second)

    assert second == {"l": []}


def test_a_schema_without_defaults_says_so() -> None:
    assert not compile_schema({"type": "object", "properties": {"a": TEXT}}).has_defaults
    assert compile_schema(
        {"type": "object", "properties": {"a": {**INT, "default": 1}}}
    ).has_defaults


def test_versions_with_equal_skeletons_prune_alike() -> None:
    one = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": TEXT}}}}
    constrained = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string", "maxLength": 3}}}
        },
    }
    wider = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}

    assert compile_schema(one).same_pruning(compile_schema(constrained))
    assert not compile_schema(one).same_pruning(compile_schema(wider))
    assert not compile_schema(one).same_pruning(compile_schema(one, preserve_unknown=True))


def test_pruning_very_many_unknown_fields_stays_linear() -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}}
    value = [{"z": 1} for _ in range(100_000)]

    _, paths = pruned(schema, value)

    assert len(paths) == 100_000
