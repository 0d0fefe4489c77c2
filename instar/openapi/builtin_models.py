"""Models that published built-in schemas refer to, by kind; references are bare model names."""

from __future__ import annotations

from collections.abc import Mapping

from instar.openapi.naming import META_PREFIX, model_name
from instar.openapi.shapes import (
    array,
    boolean,
    integer,
    list_by,
    mapping,
    number,
    obj,
    text,
    texts,
)
from instar.plain import Object


def _name(kind: str) -> str:
    return model_name("apiextensions.k8s.io", "v1", kind, builtin=True)


JSON_SCHEMA_MODEL = _name("JSONSchemaProps")


def _schema(description: str) -> Object:
    return {"$ref": JSON_SCHEMA_MODEL, "description": description}


def _schemas(description: str) -> Object:
    return array({"$ref": JSON_SCHEMA_MODEL}, description, **{"x-kubernetes-list-type": "atomic"})


def _schema_map(description: str) -> Object:
    return mapping({"$ref": JSON_SCHEMA_MODEL}, description)


def _free(description: str) -> Object:
    """No type: any JSON value."""
    return {"description": description}


_RULE = obj(
    "A rule in CEL.",
    {
        "fieldPath": text("The field an error is reported at."),
        "message": text("What to say when the rule does not hold."),
        "messageExpression": text("The same, computed."),
        "optionalOldSelf": boolean("Also run where there is no old value."),
        "reason": text("For machines, when the rule does not hold."),
        "rule": text("The expression; it must be true."),
    },
    "rule",
)

_JSON_SCHEMA = obj(
    "A schema in the form of JSON Schema.",
    {
        "$ref": text(),
        "$schema": text(),
        "additionalItems": _free("Not supported."),
        "additionalProperties": _free("A schema for all further fields, or whether there are any."),
        "allOf": _schemas("All of these must hold."),
        "anyOf": _schemas("At least one of these must hold."),
        "default": _free("The value of a missing field."),
        "definitions": _schema_map("Not supported."),
        "dependencies": mapping(_free(""), "Not supported."),
        "description": text("What the field is for."),
        "enum": array(_free(""), "The values allowed.", **{"x-kubernetes-list-type": "atomic"}),
        "example": _free("An example."),
        "exclusiveMaximum": boolean("The maximum itself is not allowed."),
        "exclusiveMinimum": boolean("The minimum itself is not allowed."),
        "externalDocs": {"$ref": _name("ExternalDocumentation")},
        "format": text("A named form of the value, for example date-time."),
        "id": text(),
        "items": _free("A schema for the items of a list."),
        "maxItems": integer("The most items.", 64),
        "maxLength": integer("The most characters.", 64),
        "maxProperties": integer("The most fields.", 64),
        "maximum": number("The largest number."),
        "minItems": integer("The fewest items.", 64),
        "minLength": integer("The fewest characters.", 64),
        "minProperties": integer("The fewest fields.", 64),
        "minimum": number("The smallest number."),
        "multipleOf": number("The number must be a multiple of this."),
        "not": _schema("This must not hold."),
        "nullable": boolean("null is allowed."),
        "oneOf": _schemas("Exactly one of these must hold."),
        "pattern": text("A regular expression the text must match."),
        "patternProperties": _schema_map("Not supported."),
        "properties": _schema_map("A schema for each field."),
        "required": texts("Fields that must be there.", **{"x-kubernetes-list-type": "atomic"}),
        "title": text("A short name of the field."),
        "type": text("object, array, string, integer, number or boolean."),
        "uniqueItems": boolean("Not supported."),
        "x-kubernetes-embedded-resource": boolean("The value is a whole object."),
        "x-kubernetes-int-or-string": boolean("The value is an integer or a text."),
        "x-kubernetes-list-map-keys": texts(
            "Keys that tell items apart.", **{"x-kubernetes-list-type": "atomic"}
        ),
        "x-kubernetes-list-type": text("atomic, set or map."),
        "x-kubernetes-map-type": text("granular or atomic."),
        "x-kubernetes-preserve-unknown-fields": boolean("Keep fields the schema does not know."),
        "x-kubernetes-validations": array(
            {"$ref": _name("ValidationRule")}, "Rules in CEL.", **list_by("rule", merge="rule")
        ),
    },
)

_EXTERNAL_DOCS = obj("Where to read more.", {"description": text(), "url": text()})
_MICRO_TIME: Object = {
    f"{META_PREFIX}MicroTime": text("A moment with microseconds.", format="date-time")
}

EXTRA_MODELS: Mapping[str, Mapping[str, Object]] = {
    "CustomResourceDefinition": {
        JSON_SCHEMA_MODEL: _JSON_SCHEMA,
        _name("ExternalDocumentation"): _EXTERNAL_DOCS,
        _name("ValidationRule"): _RULE,
    },
    "Event": _MICRO_TIME,
    "Lease": _MICRO_TIME,
}
