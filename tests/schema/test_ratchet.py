"""Old mistakes are forgiven where nothing changed."""

from __future__ import annotations

from typing import Any

from instar.kube.schema.compiled import compile_schema

SHORT = {"type": "string", "maxLength": 2}


def fields(schema: dict[str, Any], new: Any, old: Any) -> list[str]:
    root = {"type": "object", "properties": {"f": schema}}
    return [error.field for error in compile_schema(root).validate({"f": new}, {"f": old})]


def test_an_unchanged_bad_value_passes_while_a_sibling_changes() -> None:
    schema = {"type": "object", "properties": {"a": SHORT, "b": SHORT}}

    assert fields(schema, {"a": "long", "b": "x"}, {"a": "long", "b": "y"}) == []
    assert fields(schema, {"a": "long", "b": "longer"}, {"a": "long", "b": "y"}) == ["f.b"]


def test_appending_to_an_atomic_list_judges_every_item() -> None:
    schema = {"type": "array", "items": SHORT}

    assert fields(schema, ["long", "x"], ["long"]) == ["f[0]"]
    assert fields(schema, ["long"], ["long"]) == []


def test_appending_to_a_map_list_judges_the_new_item_only() -> None:
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": SHORT}},
    }
    bad = {"k": "1", "v": "long"}

    assert fields(schema, [{"k": "2", "v": "long"}, bad], [bad]) == ["f[0].v"]


def test_a_map_list_in_another_order_is_unchanged() -> None:
    schema = {
        "type": "array",
        "maxItems": 1,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}}},
    }

    assert fields(schema, [{"k": "2"}, {"k": "1"}], [{"k": "1"}, {"k": "2"}]) == []


def test_changing_one_key_of_a_map_keeps_the_others_forgiven() -> None:
    schema = {"type": "object", "additionalProperties": SHORT}

    assert fields(schema, {"a": "long", "b": "1"}, {"a": "long", "b": "2"}) == []


def test_a_combinator_is_forgiven_only_as_a_whole() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
        "allOf": [{"properties": {"x": {"maxLength": 2}}}],
    }

    assert fields(schema, {"x": "long", "y": "1"}, {"x": "long", "y": "2"}) == ["f.x", "<nil>"]
    assert fields(schema, {"x": "long"}, {"x": "long"}) == []


def test_required_is_forgiven_only_when_the_parent_is_unchanged() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"b": {"type": "string"}}}

    assert fields(schema, {"b": "1"}, {"b": "2"}) == ["f.a"]
    assert fields(schema, {"b": "1"}, {"b": "1"}) == []


def test_one_and_one_point_zero_are_a_change() -> None:
    schema = {"type": "number", "minimum": 5}

    assert fields(schema, 1, 1.0) == ["f"]
    assert fields(schema, 1, 1) == []


def test_a_create_is_not_forgiven() -> None:
    root = {"type": "object", "properties": {"f": SHORT}}

    assert compile_schema(root).validate({"f": "long"})


def test_the_identity_of_an_object_is_never_forgiven() -> None:
    root = {"type": "object", "properties": {"kind": SHORT, "f": {"type": "string"}}}
    compiled = compile_schema(root)

    found = compiled.validate({"kind": "Long", "f": "1"}, {"kind": "Long", "f": "2"})

    assert [error.field for error in found] == ["kind"]
