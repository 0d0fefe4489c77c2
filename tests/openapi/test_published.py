"""The schema of one version, as v3 and v2 publish it."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.api.discovery import DiscoveryResource
from instar.kube.openapi.published import published_schema
from instar.kube.openapi.reference_style import V2, V3, Dialect
from tests.openapi.make import custom
from tests.support.crds import version

PRESERVE = "x-kubernetes-preserve-unknown-fields"
GVK = [{"group": "example.com", "kind": "Foo", "version": "v1"}]
BARE = {"type": "object", "x-kubernetes-group-version-kind": GVK}
BOTH = [{"type": "integer"}, {"type": "string"}]


def publish(resource: DiscoveryResource, dialect: Dialect) -> dict[str, Any]:
    return published_schema(resource, resource.crd.versions[0], dialect)


def field(schema: dict[str, Any], dialect: Dialect, **parent: Any) -> dict[str, Any]:
    """How a field ``a`` with this schema is published."""
    root = {"type": "object", "properties": {"a": schema}, **parent}
    found: dict[str, Any] = publish(custom(version(schema=root)), dialect)["properties"]["a"]
    return found


@pytest.mark.parametrize("dialect", [V2, V3])
def test_every_object_gets_type_and_metadata(dialect: Dialect) -> None:
    found = publish(custom(), dialect)

    assert found["x-kubernetes-group-version-kind"] == GVK
    assert set(found["properties"]) == {"apiVersion", "kind", "metadata"}
    target = f"{dialect.prefix}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    metadata = found["properties"]["metadata"]
    assert metadata.get("$ref", metadata.get("allOf", [{}])[0].get("$ref")) == target


@pytest.mark.parametrize("dialect", [V2, V3])
@pytest.mark.parametrize(
    "schema",
    [
        None,
        {"type": "object", "properties": {"a": {"description": "no type"}}},
        {"type": "object", "properties": {"a": {"type": "text"}}},
        {"type": "object", "properties": {"a": {"type": ["string"]}}},
        {"properties": {"a": {"type": "string"}}},
    ],
)
def test_a_missing_non_structural_or_ill_typed_schema_says_nothing(
    schema: dict[str, Any] | None, dialect: Dialect
) -> None:
    assert publish(custom(version(schema=schema)), dialect) == BARE


def test_selectable_fields_lose_their_leading_dot() -> None:
    resource = custom(version(selectableFields=[{"jsonPath": ".spec.a"}]))

    assert publish(resource, V2)["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.a"}]


def test_v3_keeps_value_rules_defaults_and_zero_bounds() -> None:
    schema = {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "nullable": True,
        "enum": [0, 1],
        "anyOf": [{"minimum": 0}],
        "x-kubernetes-validations": [{"rule": "self > 0"}],
    }

    assert field(schema, V3) == schema


def test_examples_and_outside_documents_are_published() -> None:
    schema = {"type": "string", "example": "", "externalDocs": {"url": "b"}}

    assert field(schema, V3) == schema
    assert field(schema, V2) == schema


def test_keywords_that_say_nothing_are_left_out() -> None:
    assert field({"type": "string", "nullable": False, "id": "x"}, V3) == {"type": "string"}


def test_int_or_string_says_so_in_plain_openapi() -> None:
    extension = {"x-kubernetes-int-or-string": True}

    assert field(extension, V3) == {**extension, "anyOf": BOTH}
    assert field({**extension, "anyOf": BOTH}, V3) == {**extension, "anyOf": BOTH}
    assert field({**extension, "anyOf": [{"pattern": "a"}]}, V3) == {
        **extension,
        "anyOf": [{"pattern": "a"}],
        "allOf": [{"anyOf": BOTH}],
    }
    assert field({**extension, "allOf": [{"anyOf": BOTH}]}, V3) == {
        **extension,
        "allOf": [{"anyOf": BOTH}],
    }
    assert field(extension, V2) == extension


def test_an_embedded_object_gets_type_and_metadata_and_must_have_a_type() -> None:
    schema = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
        "required": ["spec"],
    }

    for dialect in (V2, V3):
        found = field(schema, dialect)
        assert set(found["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
        assert found["required"] == ["spec", "kind", "apiVersion"]


def test_v2_leaves_an_open_embedded_object_open() -> None:
    schema = {"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True}

    assert field(schema, V2) == {"x-kubernetes-embedded-resource": True, PRESERVE: True}
    assert "properties" in field(schema, V3)


def test_v2_drops_defaults_and_junctors() -> None:
    schema = {
        "type": "string",
        "default": "a",
        "maxLength": 3,
        **{junctor: [{"pattern": "a"}] for junctor in ("allOf", "anyOf", "oneOf")},
        "not": {"pattern": "b"},
    }

    assert field(schema, V2) == {"type": "string", "maxLength": 3}


def test_v2_says_nothing_about_nullable_fields_and_does_not_require_them() -> None:
    nullable = {"type": "object", "nullable": True, "properties": {"b": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {"a": nullable, "c": {"type": "string"}},
        "required": ["a", "c"],
    }

    found = publish(custom(version(schema=schema)), V2)

    assert found["properties"]["a"] == {}
    assert found["required"] == ["c"]


def test_v2_forgets_requirements_beside_nullable_values() -> None:
    schema = {
        "type": "object",
        "required": ["b"],
        "additionalProperties": {"type": "string", "nullable": True},
    }

    assert field(schema, V2) == {"type": "object", "additionalProperties": {}}


def test_v2_leaves_open_nodes_open() -> None:
    open_object = {"type": "object", PRESERVE: True, "properties": {"b": {"type": "string"}}}
    open_array = {"type": "array", PRESERVE: True, "items": {"type": "string"}}

    assert field(open_object, V2) == {PRESERVE: True}
    assert field(open_array, V2) == {PRESERVE: True}
    assert field(open_object, V3) == open_object


def test_v2_of_an_open_root_has_no_fields_at_all() -> None:
    in_schema = custom(version(schema={"type": "object", PRESERVE: True}))
    by_flag = custom(version(), preserveUnknownFields=True)

    assert publish(in_schema, V2) == BARE
    assert publish(by_flag, V2) == BARE
    assert set(publish(by_flag, V3)["properties"]) == {"apiVersion", "kind", "metadata"}


def test_publishing_does_not_change_the_schema_of_the_crd() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"x-kubernetes-int-or-string": True, "nullable": True}},
    }
    before = repr(schema)

    for dialect in (V2, V3):
        publish(custom(version(schema=schema)), dialect)

    assert repr(schema) == before
