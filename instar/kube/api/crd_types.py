"""Tables of the Go types of a CustomResourceDefinition: each field's type and when it is encoded.

``crd_decode.py`` interprets these tables (model: ``go_types.py``) to drop unknown fields, reject
wrong JSON types with the Go type's name, and encode zero values.
"""

from __future__ import annotations

from functools import cache

from instar.kube.api.go_types import (
    BOOL,
    BYTES,
    FLOAT,
    INT32,
    INT64,
    JSON,
    STRING,
    STRINGS,
    TIME,
    ListOf,
    MapOf,
    Scalar,
    ScalarForm,
    Struct,
    Union,
    UnionKind,
    always,
    filled,
    present,
)


@cache
def crd_type(version: str) -> Struct:
    """Return the type of the whole object at ``v1`` or ``v1beta1``."""
    specs = {"v1": _v1_spec, "v1beta1": _v1beta1_spec}
    return Struct(
        "CustomResourceDefinition",
        version,
        {
            "apiVersion": filled(STRING),
            "kind": filled(STRING),
            "metadata": always(_object_meta()),
            "spec": always(specs[version]()),
            "status": always(_status(version)),
        },
    )


def _v1_spec() -> Struct:
    def named(name: str) -> Scalar:
        return Scalar(ScalarForm.STRING, f"v1.{name}")

    webhook = {
        "clientConfig": present(_client_config("v1")),
        "conversionReviewVersions": always(STRINGS),
    }
    conversion = {
        "strategy": always(named("ConversionStrategyType")),
        "webhook": present(Struct("WebhookConversion", "v1", webhook)),
    }
    return Struct(
        "CustomResourceDefinitionSpec",
        "v1",
        {
            "group": always(STRING),
            "names": always(_names("v1")),
            "scope": always(named("ResourceScope")),
            "versions": always(ListOf(_version("v1"))),
            "conversion": present(Struct("CustomResourceConversion", "v1", conversion)),
            "preserveUnknownFields": filled(BOOL),
        },
    )


def _v1beta1_spec() -> Struct:
    def named(name: str) -> Scalar:
        return Scalar(ScalarForm.STRING, f"v1beta1.{name}")

    conversion = {
        "strategy": always(named("ConversionStrategyType")),
        "webhookClientConfig": present(_client_config("v1beta1")),
        "conversionReviewVersions": filled(STRINGS),
    }
    return Struct(
        "CustomResourceDefinitionSpec",
        "v1beta1",
        {
            "group": always(STRING),
            "version": filled(STRING),
            "names": always(_names("v1beta1")),
            "scope": always(named("ResourceScope")),
            "validation": present(_validation("v1beta1")),
            "subresources": present(_subresources("v1beta1")),
            "versions": filled(ListOf(_version("v1beta1"))),
            "additionalPrinterColumns": filled(ListOf(_column("v1beta1"))),
            "selectableFields": filled(ListOf(_selectable("v1beta1"))),
            "conversion": present(Struct("CustomResourceConversion", "v1beta1", conversion)),
            "preserveUnknownFields": present(BOOL),
        },
    )


def _version(package: str) -> Struct:
    return Struct(
        "CustomResourceDefinitionVersion",
        package,
        {
            "name": always(STRING),
            "served": always(BOOL),
            "storage": always(BOOL),
            "deprecated": filled(BOOL),
            "deprecationWarning": present(STRING),
            "schema": present(_validation(package)),
            "subresources": present(_subresources(package)),
            "additionalPrinterColumns": filled(ListOf(_column(package))),
            "selectableFields": filled(ListOf(_selectable(package))),
        },
    )


def _validation(package: str) -> Struct:
    schema = json_schema_type(package)
    return Struct("CustomResourceValidation", package, {"openAPIV3Schema": present(schema)})


def _subresources(package: str) -> Struct:
    scale = Struct(
        "CustomResourceSubresourceScale",
        package,
        {
            "specReplicasPath": always(STRING),
            "statusReplicasPath": always(STRING),
            "labelSelectorPath": present(STRING),
        },
    )
    status = Struct("CustomResourceSubresourceStatus", package)
    return Struct(
        "CustomResourceSubresources",
        package,
        {"status": present(status), "scale": present(scale)},
    )


def _column(package: str) -> Struct:
    return Struct(
        "CustomResourceColumnDefinition",
        package,
        {
            "name": always(STRING),
            "type": always(STRING),
            "format": filled(STRING),
            "description": filled(STRING),
            "priority": filled(INT32),
            "jsonPath" if package == "v1" else "JSONPath": always(STRING),
        },
    )


def _selectable(package: str) -> Struct:
    return Struct("SelectableField", package, {"jsonPath": always(STRING)})


def _client_config(package: str) -> Struct:
    service = Struct(
        "ServiceReference",
        package,
        {
            "namespace": always(STRING),
            "name": always(STRING),
            "path": present(STRING),
            "port": present(INT32),
        },
    )
    return Struct(
        "WebhookClientConfig",
        package,
        {"url": present(STRING), "service": present(service), "caBundle": filled(BYTES)},
    )


def _names(package: str) -> Struct:
    return Struct(
        "CustomResourceDefinitionNames",
        package,
        {
            "plural": always(STRING),
            "singular": filled(STRING),
            "shortNames": filled(STRINGS),
            "kind": always(STRING),
            "listKind": filled(STRING),
            "categories": filled(STRINGS),
        },
    )


def _status(package: str) -> Struct:
    condition = Struct(
        "CustomResourceDefinitionCondition",
        package,
        {
            "type": always(
                Scalar(ScalarForm.STRING, f"{package}.CustomResourceDefinitionConditionType")
            ),
            "status": always(Scalar(ScalarForm.STRING, f"{package}.ConditionStatus")),
            "lastTransitionTime": always(TIME),
            "reason": filled(STRING),
            "message": filled(STRING),
            "observedGeneration": filled(INT64),
        },
    )
    return Struct(
        "CustomResourceDefinitionStatus",
        package,
        {
            "conditions": always(ListOf(condition)),
            "acceptedNames": always(_names(package)),
            "storedVersions": always(STRINGS),
            "observedGeneration": filled(INT64),
        },
    )


@cache
def json_schema_type(package: str) -> Struct:
    """Return the type JSONSchemaProps; built in two steps because it refers to itself."""
    schema = Struct("JSONSchemaProps", package)
    or_array = Union(UnionKind.SCHEMA_OR_ARRAY, schema)
    or_bool = Union(UnionKind.SCHEMA_OR_BOOL, schema)
    or_strings = Union(UnionKind.SCHEMA_OR_STRINGS, schema)
    docs = Struct(
        "ExternalDocumentation", package, {"description": filled(STRING), "url": filled(STRING)}
    )
    schema.fields.update({name: filled(STRING) for name in _TEXTS})
    schema.fields["$ref"] = present(STRING)
    schema.fields.update({name: present(JSON) for name in ("default", "example")})
    schema.fields.update({name: present(FLOAT) for name in ("maximum", "minimum", "multipleOf")})
    schema.fields.update({name: present(INT64) for name in _COUNTS})
    schema.fields.update({name: filled(BOOL) for name in _FLAGS})
    schema.fields.update({name: filled(ListOf(schema)) for name in ("allOf", "oneOf", "anyOf")})
    schema.fields.update(
        {name: filled(MapOf(schema)) for name in ("properties", "patternProperties", "definitions")}
    )
    schema.fields.update(
        {
            "enum": filled(ListOf(JSON)),
            "required": filled(STRINGS),
            "items": present(or_array),
            "not": present(schema),
            "additionalProperties": present(or_bool),
            "additionalItems": present(or_bool),
            "dependencies": filled(MapOf(or_strings)),
            "externalDocs": present(docs),
            "x-kubernetes-preserve-unknown-fields": present(BOOL),
            "x-kubernetes-list-map-keys": filled(STRINGS),
            "x-kubernetes-list-type": present(STRING),
            "x-kubernetes-map-type": present(STRING),
            "x-kubernetes-validations": filled(ListOf(_rule(package))),
        }
    )
    return schema


_TEXTS = ("id", "$schema", "description", "type", "format", "title", "pattern")
_COUNTS = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
_FLAGS = (
    "exclusiveMaximum",
    "exclusiveMinimum",
    "uniqueItems",
    "nullable",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)


def _rule(package: str) -> Struct:
    return Struct(
        "ValidationRule",
        package,
        {
            "rule": always(STRING),
            "message": filled(STRING),
            "messageExpression": filled(STRING),
            "reason": present(Scalar(ScalarForm.STRING, f"{package}.FieldValueErrorReason")),
            "fieldPath": filled(STRING),
            "optionalOldSelf": present(BOOL),
        },
    )


def _object_meta() -> Struct:
    owner = Struct(
        "OwnerReference",
        "v1",
        {
            **{name: always(STRING) for name in ("apiVersion", "kind", "name", "uid")},
            "controller": present(BOOL),
            "blockOwnerDeletion": present(BOOL),
        },
    )
    managed = Struct(
        "ManagedFieldsEntry",
        "v1",
        {
            **{name: filled(STRING) for name in ("manager", "operation", "apiVersion")},
            "time": present(TIME),
            "fieldsType": filled(STRING),
            "fieldsV1": present(JSON),
            "subresource": filled(STRING),
        },
    )
    texts = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion")
    return Struct(
        "ObjectMeta",
        "v1",
        {
            **{name: filled(STRING) for name in texts},
            "generation": filled(INT64),
            "creationTimestamp": present(TIME),
            "deletionTimestamp": present(TIME),
            "deletionGracePeriodSeconds": present(INT64),
            "labels": filled(MapOf(STRING)),
            "annotations": filled(MapOf(STRING)),
            "ownerReferences": filled(ListOf(owner)),
            "finalizers": filled(STRINGS),
            "managedFields": filled(ListOf(managed)),
        },
    )
