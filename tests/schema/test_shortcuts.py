"""The walks that only say "nothing to do" and "nothing wrong" agree with those that report."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from instar.base.json_values import Object, copy_json
from instar.kube.schema.compiled import CompiledSchema, compile_schema
from instar.kube.schema.metadata.embedded_resources import EmbeddedError
from instar.kube.schema.pipeline import take_in
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.validation.validate import compile_node
from tests.schema.test_laws import OBJECTS, SCHEMAS


def reported(compiled: CompiledSchema, obj: Object) -> list[str]:
    """What the walks that tell would take away."""
    dropped = compiled.prune_reporting(obj)
    compiled.drop_nulls(obj)
    return dropped + compiled.coerce_embedded(obj, lenient=True)


@given(SCHEMAS, OBJECTS)
def test_an_object_found_normal_loses_nothing_by_pruning(schema: Any, obj: Object) -> None:
    compiled = compile_schema(schema)

    said = compiled.is_tidy(obj)

    after = copy_json(obj)
    assert not (said and (reported(compiled, after) or after != obj))


@given(SCHEMAS, OBJECTS)
def test_an_accepted_object_passes_exactly_when_no_error_is_reported(
    schema: Any, obj: Object
) -> None:
    compiled, node = compile_schema(schema), compile_node(structural(schema))
    obj.pop("metadata", None)
    try:
        take_in(compiled, obj)
    except EmbeddedError:
        return  # refused before anything is judged

    assert node.passes(obj) == node.accepts(obj, "")


@given(SCHEMAS, OBJECTS)
def test_any_object_passes_exactly_when_no_error_is_reported(schema: Any, obj: Object) -> None:
    node = compile_node(structural(schema))

    assert node.passes(obj) == node.accepts(obj, "")


PLACES = [
    {"type": "integer", "minimum": 1, "maximum": 3},
    {"type": "integer", "format": "int32"},
    {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
    {"type": "integer", "minimum": -(2**63), "maximum": 2**60 + 1},
    {"type": "integer", "minimum": 2**40, "format": "int32"},
    {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1, "format": "int32"},
    {"type": "integer", "minimum": -(2**63), "maximum": 3},
    {"type": "integer", "maximum": 2**63 - 1},
    {"type": "integer", "minimum": 2**63 - 1, "format": "int64"},
    {"type": "integer", "minimum": 2**53, "maximum": 2**53 + 1},
    {"type": "integer", "multipleOf": 2},
    {"type": "integer", "enum": [1, 2]},
    {"type": "string", "minLength": 1, "maxLength": 2},
    {"type": "string", "pattern": "^a", "format": "date"},
    {"type": "string", "format": "date"},
    {"type": "string", "pattern": "["},
    {"type": "string", "enum": ["a"]},
    {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
    {"type": "array", "uniqueItems": True, "items": {"type": "integer"}},
    {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}},
    {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1},
    {"type": "object", "additionalProperties": False, "properties": {"a": {}}},
    {"type": "object", "minProperties": 2, "required": ["a", 5]},
    {"type": "object", "format": "int32"},
    {"type": "object", "not": {"required": ["a"]}},
    {"x-kubernetes-int-or-string": True},
    {},
]
VALUES: list[Any] = [
    *(None, True, 0, 1, 2, 3, 4, 2**31, 2**45, 2**62, 2**63, 2**70, -(2**64), 1.0, 1.5),
    *(2**31 - 1, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, -(2**63), -(2**63) - 1),
    *("", "a", "ab", "abc", "2024-01-01", "b\ud800"),
    *([], ["a"], [1, 1], [1, 2, 3], ["a", "b"], [[True], []], [[1]], [None]),
    *({}, {"a": "x"}, {"a": 1}, {"b": "x"}, {"a": "x", "b": "y"}, {"a": None}),
]


@pytest.mark.parametrize("schema", PLACES, ids=str)
def test_every_keyword_that_has_a_way_of_its_own_passes_what_its_check_accepts(
    schema: Any,
) -> None:
    node = compile_node(structural(schema))

    for value in VALUES:
        assert node.passes(value) == node.accepts(value, ""), value


def test_nothing_is_walked_twice_of_an_object_that_comes_tidy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = compile_schema({"type": "object", "properties": {"a": {"type": "string"}}})
    monkeypatch.setattr(CompiledSchema, "prune_reporting", lambda *_: pytest.fail("pruned"))

    assert take_in(compiled, {"kind": "K", "metadata": {"labels": {}}, "a": "x"}) == []
