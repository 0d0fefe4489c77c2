"""Values in CRD validation messages, printed as upstream prints its internal Go structs.

Called by the CRD validation modules. Upstream prints structs through their JSON encoding, and its
internal types have no JSON names, so field names are Go's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base.json_values import Object

Schema = Mapping[str, Any]

SCHEMA_FIELDS: dict[str, str] = {
    "id": "ID",
    "$schema": "Schema",
    "$ref": "Ref",
    "description": "Description",
    "type": "Type",
    "nullable": "Nullable",
    "format": "Format",
    "title": "Title",
    "default": "Default",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "enum": "Enum",
    "maxProperties": "MaxProperties",
    "minProperties": "MinProperties",
    "required": "Required",
    "items": "Items",
    "allOf": "AllOf",
    "oneOf": "OneOf",
    "anyOf": "AnyOf",
    "not": "Not",
    "properties": "Properties",
    "additionalProperties": "AdditionalProperties",
    "patternProperties": "PatternProperties",
    "dependencies": "Dependencies",
    "additionalItems": "AdditionalItems",
    "definitions": "Definitions",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-embedded-resource": "XEmbeddedResource",
    "x-kubernetes-int-or-string": "XIntOrString",
    "x-kubernetes-list-map-keys": "XListMapKeys",
    "x-kubernetes-list-type": "XListType",
    "x-kubernetes-map-type": "XMapType",
    "x-kubernetes-validations": "XValidations",
}
"""Keyword -> Go field, in the order of the struct."""

_TEXTS = frozenset({"id", "$schema", "description", "type", "format", "title", "pattern"})
_FLAGS = frozenset(
    {
        "nullable",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "uniqueItems",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    }
)


def versions_value(versions: list[Object] | None) -> list[Object] | None:
    """Return ``spec.versions`` of the internal form."""
    return [_version(item) for item in versions] if versions else None


def schema_value(schema: Schema) -> Object:
    """Return a JSONSchemaProps."""
    return {shown: _keyword(name, schema.get(name)) for name, shown in SCHEMA_FIELDS.items()}


def items_value(items: Any) -> Object | None:
    """Return ``items`` as Go's JSONSchemaPropsOrArray."""
    if items is None:
        return None
    if isinstance(items, Mapping):
        return {"Schema": schema_value(items), "JSONSchemas": None}
    return {"Schema": None, "JSONSchemas": [schema_value(item) for item in items] or None}


def rule_value(rule: Schema) -> Object:
    """Return an entry of ``x-kubernetes-validations``."""
    return {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


def _keyword(name: str, value: Any) -> Any:
    if value is None:
        return "" if name in _TEXTS else False if name in _FLAGS else None
    match name:
        case "properties" | "patternProperties" | "definitions":
            return {key: schema_value(item) for key, item in sorted(value.items())}
        case "allOf" | "oneOf" | "anyOf":
            return [schema_value(item) for item in value]
        case "not":
            return schema_value(value)
        case "items":
            return items_value(value)
        case "additionalProperties" | "additionalItems":
            return _schema_or_bool(value)
        case "dependencies":
            return {key: _dependency(item) for key, item in sorted(value.items())}
        case "externalDocs":
            return {"Description": value.get("description", ""), "URL": value.get("url", "")}
        case "x-kubernetes-validations":
            return [rule_value(item) for item in value]
        case _:
            return value


def _schema_or_bool(value: Any) -> Object:
    if isinstance(value, bool):
        return {"Allows": value, "Schema": None}
    return {"Allows": True, "Schema": schema_value(value)}


def _dependency(value: Any) -> Object:
    if isinstance(value, Mapping):
        return {"Schema": schema_value(value), "Property": None}
    return {"Schema": None, "Property": value}


def _version(version: Object) -> Object:
    schema = version.get("schema")
    if schema is not None:
        root = schema.get("openAPIV3Schema")
        schema = {"OpenAPIV3Schema": None if root is None else schema_value(root)}
    columns, selectable = version.get("additionalPrinterColumns"), version.get("selectableFields")
    return {
        "Name": version.get("name", ""),
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": schema,
        "Subresources": _subresources(version.get("subresources")),
        "AdditionalPrinterColumns": [_column(item) for item in columns] if columns else None,
        "SelectableFields": [{"JSONPath": item.get("jsonPath", "")} for item in selectable]
        if selectable
        else None,
    }


def _subresources(value: Object | None) -> Object | None:
    if value is None:
        return None
    scale = value.get("scale")
    return {
        "Status": value.get("status"),
        "Scale": None
        if scale is None
        else {
            "SpecReplicasPath": scale.get("specReplicasPath", ""),
            "StatusReplicasPath": scale.get("statusReplicasPath", ""),
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        },
    }


def _column(column: Object) -> Object:
    return {
        "Name": column.get("name", ""),
        "Type": column.get("type", ""),
        "Format": column.get("format", ""),
        "Description": column.get("description", ""),
        "Priority": column.get("priority", 0),
        "JSONPath": column.get("JSONPath", ""),
    }
