"""Embedded resources, set and map lists, and the defaults a schema may carry."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.metadata.object_meta import MetaError
from instar.kube.schema.validation.defaults_check import default_errors

EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


def root(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SCHEMA = compile_schema(root(spec=root(em=EMBEDDED)))


def inside(em: Any) -> dict[str, Any]:
    return {"spec": {"em": em}}


@pytest.mark.parametrize(
    ("em", "text"),
    [
        ({"apiVersion": 1}, "spec.em.apiVersion: Invalid value: 1: must be a string"),
        (
            {"metadata": {"labels": {"x": 1}}},
            'spec.em.metadata: Invalid value: {"labels":{"x":1}}: json: cannot unmarshal number '
            "into Go struct field ObjectMeta.labels of type string",
        ),
    ],
)
def test_undecodable_embedded_resources_are_refused(em: Any, text: str) -> None:
    with pytest.raises(MetaError) as caught:
        SCHEMA.coerce_embedded(inside(em), lenient=False)

    assert str(caught.value) == text


def test_unknown_embedded_metadata_is_dropped_and_named() -> None:
    obj = inside({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "foo": 1}})

    unknown = SCHEMA.coerce_embedded(obj, lenient=False)

    assert unknown == ["spec.em.metadata.foo"]
    assert obj == inside({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}})


def test_from_storage_bad_embedded_fields_are_dropped() -> None:
    obj = inside({"apiVersion": 1, "kind": "K", "metadata": {"labels": {"x": 1}, "name": "a"}})

    SCHEMA.coerce_embedded(obj, lenient=True)

    assert obj == inside({"kind": "K", "metadata": {"name": "a"}})


@pytest.mark.parametrize(
    ("em", "errors"),
    [
        ({"apiVersion": "v1", "kind": "K", "metadata": {"namespace": "n"}}, []),
        ({}, ["spec.em.apiVersion: Required value", "spec.em.kind: Required value"]),
        (
            {"apiVersion": "", "kind": ""},
            [
                'spec.em.apiVersion: Invalid value: "": must not be empty',
                'spec.em.kind: Invalid value: "": must not be empty',
            ],
        ),
        (
            {"apiVersion": "a/b/c", "kind": "K"},
            ['spec.em.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
        (
            {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a/b"}},
            ["spec.em.metadata.name: Invalid value: \"a/b\": may not contain '/'"],
        ),
    ],
)
def test_rules_of_embedded_resources(em: Any, errors: list[str]) -> None:
    assert [str(error) for error in SCHEMA.embedded_errors(inside(em))] == errors


LISTS = compile_schema(
    root(
        s={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        m={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    )
)


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        ({"s": ["a", "b", "a", "a"]}, ['s[2]: Duplicate value: "a"']),
        ({"s": [1, 1.0, True]}, []),
        ({"m": [{"k": "1"}, {"k": "1", "v": 2}]}, ['m[1]: Duplicate value: {"k":"1"}']),
        ({"m": [{}, {"v": 1}]}, ["m[1]: Duplicate value: {}"]),
        (
            {"m": [{"k": "1"}, "x"]},
            ['m[1]: Invalid value: "x": must be an object for an array of list-type map'],
        ),
    ],
)
def test_items_of_sets_and_maps_are_unique(obj: dict[str, Any], errors: list[str]) -> None:
    assert [str(error) for error in LISTS.list_type_errors(obj)] == errors


def test_an_old_violation_anywhere_switches_the_rule_off() -> None:
    assert LISTS.list_type_errors({"s": ["a", "a"]}, {"m": [{}, {}]}) == []
    assert LISTS.list_type_errors({"s": ["a", "a"]}, {"s": ["a"]})


P = "schema"


@pytest.mark.parametrize(
    ("schema", "errors"),
    [
        (root(a={"type": "integer", "default": 1}), []),
        (
            root(a={"type": "integer", "default": "x"}),
            [
                'schema.properties[a].default: Invalid value: "string":  in body must be of type '
                'integer: "string"'
            ],
        ),
        (
            root(a={**root(b={"type": "string"}), "default": {"z": 1}}),
            ['schema.properties[a].default: Invalid value: {"z":1}: must not have unknown fields'],
        ),
        (
            root(a={**root(b={"type": "string"}), "required": ["b"], "default": {}}),
            ["schema.properties[a].default.b: Required value"],
        ),
        (
            root(a={**EMBEDDED, "default": {"kind": "K"}}),
            ["schema.properties[a].default.apiVersion: Required value"],
        ),
        (
            {**root(), "default": {}},
            [
                "schema.default.apiVersion: Required value",
                "schema.default.kind: Required value",
            ],
        ),
        (
            root(
                a={
                    **EMBEDDED,
                    **root(metadata=root(name={"type": "string", "default": "a/b"})),
                }
            ),
            [
                "schema.properties[a].properties[metadata].properties[name].default: "
                'Invalid value: "a/b": must result in valid metadata: metadata.name: '
                "Invalid value: \"a/b\": may not contain '/'"
            ],
        ),
        (
            root(a={"type": "object", "additionalProperties": {"type": "integer", "default": "x"}}),
            [],
        ),
    ],
)
def test_defaults_must_be_values_of_their_node(schema: dict[str, Any], errors: list[str]) -> None:
    assert [str(error) for error in default_errors(schema, P)] == errors


def test_unpruned_defaults_can_be_tolerated() -> None:
    schema = root(a={**root(b={"type": "string"}), "default": {"z": 1}})

    assert default_errors(schema, P, require_pruned=False) == []
