"""Protobuf encoding of an OpenAPI v3 document (gnostic's ``openapi.v3``).

Called by ``server/endpoints/openapi.py`` for clients that ask for it. The tables cover only the
keys of our own v3 documents.
"""

from __future__ import annotations

from typing import Any

from instar.kube.openapi.protobuf.messages import (
    Json,
    Table,
    Writer,
    any_value,
    delimited,
    double,
    each,
    flag,
    integer,
    message,
    named,
    nested,
    text,
)


def encode(document: Json) -> bytes:
    """Encode a JSON v3 document as a ``Document`` message."""
    return message(document, _DOCUMENT, 9)


def _or_reference(writer: Writer) -> Writer:
    """Encode a value of its kind (field 1), or a reference (field 2)."""

    def write(number: int, value: Json) -> bytes:
        if "$ref" in value:
            return delimited(number, delimited(2, message(value, _REFERENCE)))
        return delimited(number, writer(1, value))

    return write


def _named_each(field: int, writer: Writer) -> Writer:
    """Encode a JSON object as a message of repeated name and value pairs."""

    def write(number: int, values: Json) -> bytes:
        body = b"".join(named(field, name, writer, value) for name, value in values.items())
        return delimited(number, body)

    return write


def _items(number: int, value: Json) -> bytes:
    return delimited(number, _schema(1, value))


def _additional(number: int, value: Any) -> bytes:
    inner = flag(2, value) if isinstance(value, bool) else _schema(1, value)
    return delimited(number, inner)


def _default(number: int, value: Any) -> bytes:
    """Encode a number, truth value or text; the message has no field for other values."""
    if isinstance(value, bool):
        return delimited(number, flag(2, value))
    if isinstance(value, int | float):
        return delimited(number, double(1, value))
    return delimited(number, text(3, value) if isinstance(value, str) else b"")


_SCHEMA: Table
_REFERENCE: Table = {"$ref": (1, text), "description": (3, text)}
_schema = _or_reference(nested(lambda: _SCHEMA, 36))
_SCHEMA = {
    "nullable": (1, flag),
    "externalDocs": (6, nested(lambda: _EXTERNAL_DOCS, 3)),
    "example": (7, any_value),
    "title": (9, text),
    "multipleOf": (10, double),
    "maximum": (11, double),
    "exclusiveMaximum": (12, flag),
    "minimum": (13, double),
    "exclusiveMinimum": (14, flag),
    "maxLength": (15, integer),
    "minLength": (16, integer),
    "pattern": (17, text),
    "maxItems": (18, integer),
    "minItems": (19, integer),
    "uniqueItems": (20, flag),
    "maxProperties": (21, integer),
    "minProperties": (22, integer),
    "required": (23, each(text)),
    "enum": (24, each(any_value)),
    "type": (25, text),
    "allOf": (26, each(_schema)),
    "oneOf": (27, each(_schema)),
    "anyOf": (28, each(_schema)),
    "not": (29, nested(lambda: _SCHEMA, 36)),
    "items": (30, _items),
    "properties": (31, _named_each(1, _schema)),
    "additionalProperties": (32, _additional),
    "default": (33, _default),
    "description": (34, text),
    "format": (35, text),
}
_EXTERNAL_DOCS: Table = {"description": (1, text), "url": (2, text)}
_MEDIA: Table = {"schema": (1, _schema)}
_media = _named_each(1, nested(lambda: _MEDIA, 5))
_BODY: Table = {"description": (1, text), "content": (2, _media), "required": (3, flag)}
_RESPONSE: Table = {"description": (1, text), "content": (3, _media)}
_PARAMETER: Table = {
    "name": (1, text),
    "in": (2, text),
    "description": (3, text),
    "required": (4, flag),
    "schema": (10, _schema),
}
_parameter = _or_reference(nested(lambda: _PARAMETER, 14))
_OPERATION: Table = {
    "tags": (1, each(text)),
    "description": (3, text),
    "operationId": (5, text),
    "parameters": (6, each(_parameter)),
    "requestBody": (7, _or_reference(nested(lambda: _BODY, 4))),
    "responses": (8, _named_each(2, _or_reference(nested(lambda: _RESPONSE, 5)))),
    "deprecated": (10, flag),
}
_operation = nested(lambda: _OPERATION, 13)
_PATH: Table = {
    "get": (4, _operation),
    "put": (5, _operation),
    "post": (6, _operation),
    "delete": (7, _operation),
    "patch": (10, _operation),
    "parameters": (13, each(_parameter)),
}
_INFO: Table = {"title": (1, text), "description": (2, text), "version": (6, text)}
_COMPONENTS: Table = {"schemas": (1, _named_each(1, _schema))}
_DOCUMENT: Table = {
    "openapi": (1, text),
    "info": (2, nested(lambda: _INFO, 7)),
    "paths": (4, _named_each(1, nested(lambda: _PATH, 14))),
    "components": (5, nested(lambda: _COMPONENTS, 10)),
}
