"""Built-in schemas know every field of the types they stand for, so pruning loses none."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

import pytest

from instar.openapi.builtin_models import EXTRA_MODELS, JSON_SCHEMA_MODEL
from instar.openapi.builtin_schemas import SCHEMAS
from instar.openapi.models import SCALE, SHARED
from instar.schema.parse import structural_errors

TYPES = {
    "ConfigMap": ("core_v1", "ConfigMap"),
    "CustomResourceDefinition": ("apiextensions_v1", "CustomResourceDefinition"),
    "Event": ("core_v1", "Event"),
    "Event.events.k8s.io": ("events_v1", "Event"),
    "Lease": ("coordination_v1", "Lease"),
    "Namespace": ("core_v1", "Namespace"),
    "Secret": ("core_v1", "Secret"),
    "SelfSubjectAccessReview": ("authorization_v1", "SelfSubjectAccessReview"),
    "SelfSubjectReview": ("authentication_v1", "SelfSubjectReview"),
    "SelfSubjectRulesReview": ("authorization_v1", "SelfSubjectRulesReview"),
    "Service": ("core_v1", "Service"),
    "ServiceAccount": ("core_v1", "ServiceAccount"),
    "StorageVersionMigration": ("storagemigration_v1", "StorageVersionMigration"),
}
SHARED_TYPES = ("DeleteOptions", "ListMeta", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference")
OPEN = "x-kubernetes-preserve-unknown-fields"


def model(module: str, name: str) -> Any:
    pytest.importorskip("lightkube.models", reason="lightkube-models lists the fields to know")
    return getattr(importlib.import_module(f"lightkube.models.{module}"), name)


def missing(schema: Mapping[str, Any], kind: Any, path: str = "") -> list[str]:
    """Fields of a lightkube model that the schema does not have, at any depth."""
    msgspec = pytest.importorskip("msgspec")
    found: list[str] = []
    for field in msgspec.structs.fields(kind):
        name = f"{path}.{field.encode_name}"
        known = schema["properties"].get(field.encode_name)
        inner = _struct(field.type, msgspec.Struct)
        if known is None:
            found.append(name)
        elif inner is not None and not _ends_here(known, field.encode_name):
            found += missing(known.get("items", known), inner, name)
    return found


def _ends_here(schema: Mapping[str, Any], name: str) -> bool:
    items = schema.get("items", schema)
    return name == "metadata" or OPEN in items or "$ref" in items


def _struct(hint: Any, base: type) -> Any:
    if isinstance(hint, type) and issubclass(hint, base):
        return hint
    if get_origin(hint) in (list, Union) or get_args(hint):
        return next((found for arg in get_args(hint) if (found := _struct(arg, base))), None)
    return None


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_no_field_of_the_type_is_unknown(kind: str) -> None:
    assert missing(SCHEMAS[kind], model(*TYPES[kind])) == []


@pytest.mark.parametrize("name", SHARED_TYPES)
def test_shared_models_have_every_field(name: str) -> None:
    schema = SHARED[f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"]

    assert missing(schema, model("meta_v1", name)) == []


def test_the_schema_of_schemas_and_scale_have_every_field() -> None:
    schemas = EXTRA_MODELS["CustomResourceDefinition"][JSON_SCHEMA_MODEL]

    assert missing(schemas, model("apiextensions_v1", "JSONSchemaProps")) == []
    assert missing(SCALE["io.k8s.api.autoscaling.v1.Scale"], model("autoscaling_v1", "Scale")) == []


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_every_schema_is_structural(kind: str) -> None:
    assert structural_errors(SCHEMAS[kind], "") == []
