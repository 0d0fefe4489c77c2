"""Protobuf encoding of the OpenAPI v2 document (gnostic's ``openapi.v2``), which old kubectl
requests.

Called by ``server/endpoints/openapi.py``. The encoder is driven by tables from JSON key to field
number and wire form, which cover only the keys of our own v2 documents.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from instar.kube.protobuf.wire import BYTES, FIXED64, VARINT, varint

Json = Mapping[str, Any]
Writer = Callable[[int, Any], bytes]


def encode(document: Json) -> bytes:
    """Encode a JSON v2 document as a ``Document`` message."""
    return _message(document, _DOCUMENT)


def frame(document: Json, paths: int, definitions: int) -> tuple[bytes, bytes]:
    """Return the bytes before the paths and before the definitions, which are written separately
    and have the given sizes. ``document`` is without them."""
    (path_field, _), (model_field, _) = _DOCUMENT["paths"], _DOCUMENT["definitions"]
    opening = _message(document, _DOCUMENT) + _tag(path_field, BYTES) + _varint(paths)
    return opening, _tag(model_field, BYTES) + _varint(definitions)


def encode_paths(paths: Json) -> bytes:
    """Encode some of a document's paths."""
    return b"".join(_named(2, *_path_pair(item)) for item in paths.items())


def encode_definitions(definitions: Json) -> bytes:
    """Encode some of a document's definitions."""
    return b"".join(_named(1, name, _schema, value) for name, value in definitions.items())


_VARINTS = [varint(value) for value in range(0x4000)]
"""Nearly every length and all tags; a document has half a million of them."""
_BYTES_TAGS = [varint(number << 3 | BYTES) for number in range(32)]


def _varint(value: int) -> bytes:
    return _VARINTS[value] if 0 <= value < 0x4000 else varint(value)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _delimited(number: int, payload: bytes) -> bytes:
    return _BYTES_TAGS[number] + _varint(len(payload)) + payload


def _text(number: int, value: Any) -> bytes:
    return _delimited(number, str(value).encode())


def _flag(number: int, value: Any) -> bytes:
    return _tag(number, VARINT) + (b"\x01" if value else b"\x00")


def _integer(number: int, value: Any) -> bytes:
    return _tag(number, VARINT) + _varint(int(value))


def _double(number: int, value: Any) -> bytes:
    return _tag(number, FIXED64) + struct.pack("<d", value)


def _each(writer: Writer) -> Writer:
    return lambda number, values: b"".join(writer(number, value) for value in values)


def _any(number: int, value: Any) -> bytes:
    """Encode a free-form value as YAML text: simple ones in the form that clients compare, others
    as JSON, which is valid YAML."""
    lines = _yaml_lines(value)
    return _delimited(number, _text(2, "\n".join([*(lines or [_json(value)]), ""])))


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS = frozenset(("y", "yes", "n", "no", "on", "off", "true", "false", "null"))


def _yaml_lines(value: Any) -> list[str]:
    """Return a list of texts or flat objects, one member per line; empty for other values."""
    lines: list[str] = []
    for item in value if isinstance(value, list) else ():
        members = [f"{name}: " for name in sorted(item)] if isinstance(item, dict) else [""]
        texts = [item[name] for name in sorted(item)] if isinstance(item, dict) else [item]
        for position, (name, text) in enumerate(zip(members, texts, strict=True)):
            if not _is_plain(text):
                return []
            lines.append(("  " if position else "- ") + name + (text or '""'))
    return lines


def _is_plain(text: Any) -> bool:
    """Return whether YAML reads the bare text as that text; an empty one needs quotes."""
    if not isinstance(text, str):
        return False
    return not text or (_PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _named(number: int, name: str, writer: Writer, value: Any) -> bytes:
    return _delimited(number, _text(1, name) + writer(2, value))


def _pairs(writer: Writer) -> Writer:
    """Encode a JSON object as a message of repeated name and value pairs (field 1)."""

    def write(number: int, values: Any) -> bytes:
        body = b"".join(_named(1, name, writer, value) for name, value in values.items())
        return _delimited(number, body)

    return write


Table = Mapping[str, tuple[int, Writer]]


def _message(value: Json, table: Table, extensions: int = 0) -> bytes:
    """Encode known keys by their field numbers, ``x-`` keys as the field ``extensions``."""
    out: list[bytes] = []
    for key, item in value.items():
        entry = table.get(key)
        if entry is not None:
            out.append(entry[1](entry[0], item))
        elif extensions and key.startswith("x-"):
            out.append(_named(extensions, key, _any, item))
    return b"".join(out)


def _nested(table: Callable[[], Table], extensions: int = 0) -> Writer:
    """Encode a nested message; ``table`` is called lazily, so that messages may be recursive."""
    return lambda number, value: _delimited(number, _message(value, table(), extensions))


def _type(number: int, value: Any) -> bytes:
    return _delimited(number, _each(_text)(1, [value] if isinstance(value, str) else value))


def _items(number: int, value: Any) -> bytes:
    return _delimited(number, _schema(1, value))


def _additional(number: int, value: Any) -> bytes:
    inner = _flag(2, value) if isinstance(value, bool) else _schema(1, value)
    return _delimited(number, inner)


def _response_schema(number: int, value: Any) -> bytes:
    return _delimited(number, _schema(1, value))


def _responses(number: int, value: Any) -> bytes:
    body = b"".join(
        _named(1, code, lambda field, item: _delimited(field, _response(1, item)), response)
        for code, response in value.items()
    )
    return _delimited(number, body)


def _paths(number: int, value: Any) -> bytes:
    return _delimited(number, encode_paths(value))


def _path_pair(item: tuple[str, Any]) -> tuple[str, Writer, Any]:
    return item[0], _nested(lambda: _PATH, 10), item[1]


def _parameters(number: int, values: Iterable[Json]) -> bytes:
    return b"".join(_delimited(number, _delimited(1, _parameter(value))) for value in values)


def _parameter(value: Json) -> bytes:
    if value["in"] == "body":
        return _delimited(1, _message(value, _BODY, 6))
    field, table, extensions = _PLACES[value["in"]]
    return _delimited(2, _delimited(field, _message(value, table, extensions)))


_SCHEMA: Table
_schema = _nested(lambda: _SCHEMA, 31)
_response = _nested(lambda: _RESPONSE, 5)

_SCHEMA = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _flag),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _flag),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _flag),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _each(_text)),
    "enum": (20, _each(_any)),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "properties": (25, _pairs(_schema)),
    "externalDocs": (29, _nested(lambda: _EXTERNAL_DOCS)),
    "example": (30, _any),
}
_EXTERNAL_DOCS: Table = {"description": (1, _text), "url": (2, _text)}
_RESPONSE: Table = {"description": (1, _text), "schema": (2, _response_schema)}
_BODY: Table = {
    "description": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _flag),
    "schema": (5, _schema),
}
_QUERY: Table = {
    "required": (1, _flag),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (6, _text),
    "format": (7, _text),
    "uniqueItems": (20, _flag),
}
_PATH_PARAMETER: Table = {
    "required": (1, _flag),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (5, _text),
    "format": (6, _text),
    "uniqueItems": (19, _flag),
}
_PLACES = {"query": (3, _QUERY, 23), "path": (4, _PATH_PARAMETER, 22)}
_OPERATION: Table = {
    "tags": (1, _each(_text)),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _each(_text)),
    "consumes": (7, _each(_text)),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "schemes": (10, _each(_text)),
    "deprecated": (11, _flag),
}
_operation = _nested(lambda: _OPERATION, 13)
_PATH: Table = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}
_INFO: Table = {"title": (1, _text), "version": (2, _text), "description": (3, _text)}
_DOCUMENT: Table = {
    "swagger": (1, _text),
    "info": (2, _nested(lambda: _INFO, 7)),
    "paths": (8, _paths),
    "definitions": (9, _pairs(_schema)),
}
