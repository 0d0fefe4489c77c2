"""Schemas of built-in kinds: for treating objects, and for publishing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from instar.kube.facts.resources import resources
from instar.kube.facts.types import (
    definition_name,
    definitions,
    group_versions,
    schema_of,
    type_names,
)
from instar.kube.schema.compiled import compile_schema
from tests.support.builtins import BUILTINS, needs_builtins

TYPES = [(version, name) for version in group_versions() for name in type_names(version)]


def node(version: str, kind: str, *path: str) -> Any:
    found: Any = schema_of(version, kind)
    for step in path:
        found = found["items"] if step == "[]" else found["properties"][step]
    return found


def keys(schema: Any) -> Iterator[str]:
    yield from schema
    for part in schema.get("properties", {}).values():
        yield from keys(part)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from keys(schema[word])


def test_references_are_resolved() -> None:
    port = node("apps/v1", "Deployment", "spec", "template", "spec", "containers", "[]", "ports")
    assert port["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert port["x-kubernetes-patch-merge-key"] == "containerPort"
    assert port["items"]["properties"]["protocol"]["default"] == "TCP"
    assert port["items"]["properties"]["containerPort"] == {"type": "integer", "format": "int32"}


def test_types_with_a_form_of_their_own_in_json() -> None:
    assert node("v1", "Service", "spec", "ports", "[]", "targetPort") == {
        "x-kubernetes-int-or-string": True,
        "format": "int-or-string",
    }
    hard = node("v1", "ResourceQuota", "spec", "hard")
    assert hard["additionalProperties"]["format"] == "quantity"
    assert node("v1", "Pod", "metadata", "creationTimestamp")["format"] == "date-time"
    assert node("coordination.k8s.io/v1", "Lease", "spec", "renewTime")["format"] == "micro-time"
    assert node("apps/v1", "ControllerRevision", "data")["x-kubernetes-preserve-unknown-fields"]


def test_keywords_beside_a_reference_are_kept() -> None:
    strategy = node("apps/v1", "Deployment", "spec", "strategy")
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    assert "rollingUpdate" in strategy["properties"]
    assert "x-kubernetes-patch-strategy" not in node("apps/v1", "DeploymentStrategy")


def test_a_schema_within_a_schema_is_left_open() -> None:
    version = node(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec", "versions", "[]", "schema"
    )
    schema = version["properties"]["openAPIV3Schema"]
    assert schema["properties"]["not"]["x-kubernetes-preserve-unknown-fields"] is True
    assert schema["properties"]["$ref"] == {"type": "string"}


def test_schemas_for_objects_have_only_what_objects_are_treated_by() -> None:
    judging = {"$ref", "allOf", "oneOf", "enum", "required", "x-kubernetes-unions"}
    for version, name in TYPES:
        schema = schema_of(version, name)
        assert schema is not None
        assert judging.isdisjoint(keys(schema)), (version, name)


def test_every_resource_has_a_schema_that_compiles() -> None:
    for item in resources():
        schema = schema_of(item.api_version, item.kind)
        assert schema is not None, item
        compiled = compile_schema(schema)
        obj = {"apiVersion": item.api_version, "kind": item.kind, "metadata": {}, "surplus": 1}
        assert compiled.prune_reporting(obj) == ["surplus"]
        assert compiled.validate(obj) == []


def test_unknown_types() -> None:
    assert schema_of("v1", "Widget") is None
    assert schema_of("example.com/v1", "Pod") is None
    assert definition_name("v1", "Widget") is None
    assert definition_name("example.com/v1", "Pod") is None
    assert definitions([("v1", "Widget")]) == {}


def test_shared_parts_are_resolved_once() -> None:
    pod = node("v1", "Pod", "spec")
    template = node("apps/v1", "Deployment", "spec", "template", "spec")
    assert pod is template


def test_definitions_bring_what_they_refer_to() -> None:
    found = definitions([("v1", "ConfigMap")])
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1"
    assert set(found) == {
        "io.k8s.api.core.v1.ConfigMap",
        *(
            f"{meta}.{n}"
            for n in ("FieldsV1", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference")
        ),
        f"{meta}.Time",
    }
    found["io.k8s.api.core.v1.ConfigMap"]["properties"].clear()
    assert definitions([("v1", "ConfigMap")])["io.k8s.api.core.v1.ConfigMap"]["properties"]


@needs_builtins
def test_published_definitions_are_the_recorded_ones() -> None:
    source = json.loads((BUILTINS / "schemas.json").read_bytes())
    assert definitions(TYPES) == source
    assert {definition_name(*item) for item in TYPES} == set(source)
