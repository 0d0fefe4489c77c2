"""Protobuf encoding of the OpenAPI v2 document (gnostic's ``openapi.v2``), which old kubectl
requests.

Called by ``server/endpoints/openapi.py``. The encoder is driven by tables from JSON key to field
number and wire form, which cover only the keys of our own v2 documents.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    pairs,
    tag,
    text,
    varint_of,
)
from instar.kube.protobuf.wire import BYTES


def encode(document: Json) -> bytes:
    """Encode a JSON v2 document as a ``Document`` message."""
    return message(document, _DOCUMENT)


def frame(document: Json, paths: int, definitions: int) -> tuple[bytes, bytes]:
    """Return the bytes before the paths and before the definitions, which are written separately
    and have the given sizes. ``document`` is without them."""
    (path_field, _), (model_field, _) = _DOCUMENT["paths"], _DOCUMENT["definitions"]
    opening = message(document, _DOCUMENT) + tag(path_field, BYTES) + varint_of(paths)
    return opening, tag(model_field, BYTES) + varint_of(definitions)


def encode_paths(paths: Json) -> bytes:
    """Encode some of a document's paths."""
    return b"".join(named(2, *_path_pair(item)) for item in paths.items())


def encode_definitions(definitions: Json) -> bytes:
    """Encode some of a document's definitions."""
    return b"".join(named(1, name, _schema, value) for name, value in definitions.items())


def _type(number: int, value: Any) -> bytes:
    return delimited(number, each(text)(1, [value] if isinstance(value, str) else value))


def _items(number: int, value: Any) -> bytes:
    return delimited(number, _schema(1, value))


def _additional(number: int, value: Any) -> bytes:
    inner = flag(2, value) if isinstance(value, bool) else _schema(1, value)
    return delimited(number, inner)


def _response_schema(number: int, value: Any) -> bytes:
    return delimited(number, _schema(1, value))


def _responses(number: int, value: Any) -> bytes:
    body = b"".join(
        named(1, code, lambda field, item: delimited(field, _response(1, item)), response)
        for code, response in value.items()
    )
    return delimited(number, body)


def _paths(number: int, value: Any) -> bytes:
    return delimited(number, encode_paths(value))


def _path_pair(item: tuple[str, Any]) -> tuple[str, Writer, Any]:
    return item[0], nested(lambda: _PATH, 10), item[1]


def _parameters(number: int, values: Iterable[Json]) -> bytes:
    return b"".join(delimited(number, delimited(1, _parameter(value))) for value in values)


def _parameter(value: Json) -> bytes:
    if value["in"] == "body":
        return delimited(1, message(value, _BODY, 6))
    field, table, extensions = _PLACES[value["in"]]
    return delimited(2, delimited(field, message(value, table, extensions)))


_SCHEMA: Table
_schema = nested(lambda: _SCHEMA, 31)
_response = nested(lambda: _RESPONSE, 5)

_SCHEMA = {
    "$ref": (1, text),
    "format": (2, text),
    "title": (3, text),
    "description": (4, text),
    "default": (5, any_value),
    "multipleOf": (6, double),
    "maximum": (7, double),
    "exclusiveMaximum": (8, flag),
    "minimum": (9, double),
    "exclusiveMinimum": (10, flag),
    "maxLength": (11, integer),
    "minLength": (12, integer),
    "pattern": (13, text),
    "maxItems": (14, integer),
    "minItems": (15, integer),
    "uniqueItems": (16, flag),
    "maxProperties": (17, integer),
    "minProperties": (18, integer),
    "required": (19, each(text)),
    "enum": (20, each(any_value)),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "properties": (25, pairs(_schema)),
    "externalDocs": (29, nested(lambda: _EXTERNAL_DOCS)),
    "example": (30, any_value),
}
_EXTERNAL_DOCS: Table = {"description": (1, text), "url": (2, text)}
_RESPONSE: Table = {"description": (1, text), "schema": (2, _response_schema)}
_BODY: Table = {
    "description": (1, text),
    "name": (2, text),
    "in": (3, text),
    "required": (4, flag),
    "schema": (5, _schema),
}
_QUERY: Table = {
    "required": (1, flag),
    "in": (2, text),
    "description": (3, text),
    "name": (4, text),
    "type": (6, text),
    "format": (7, text),
    "uniqueItems": (20, flag),
}
_PATH_PARAMETER: Table = {
    "required": (1, flag),
    "in": (2, text),
    "description": (3, text),
    "name": (4, text),
    "type": (5, text),
    "format": (6, text),
    "uniqueItems": (19, flag),
}
_PLACES = {"query": (3, _QUERY, 23), "path": (4, _PATH_PARAMETER, 22)}
_OPERATION: Table = {
    "tags": (1, each(text)),
    "description": (3, text),
    "operationId": (5, text),
    "produces": (6, each(text)),
    "consumes": (7, each(text)),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "schemes": (10, each(text)),
    "deprecated": (11, flag),
}
_operation = nested(lambda: _OPERATION, 13)
_PATH: Table = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}
_INFO: Table = {"title": (1, text), "version": (2, text), "description": (3, text)}
_DOCUMENT: Table = {
    "swagger": (1, text),
    "info": (2, nested(lambda: _INFO, 7)),
    "paths": (8, _paths),
    "definitions": (9, pairs(_schema)),
}
