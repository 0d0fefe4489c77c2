"""Protobuf encoder: JSON values to messages, with one compiled writer per message.

Called by ``envelope.py``. Bytes are as Go writes them: fields by number, required ones even when
unset, maps sorted by key. Unknown fields are left out. A value of the wrong type raises a Python
error, which ``envelope.py`` turns into a ``MessageError``.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable
from functools import cache
from struct import pack
from typing import Any

from instar.kube.facts.messages import MessageField, fields_of
from instar.kube.protobuf import special_types
from instar.kube.protobuf.errors import ProtobufError
from instar.kube.protobuf.json_forms import LIMIT, TOO_DEEP, MessageShape, shape_of
from instar.kube.protobuf.wire import (
    BYTES,
    FIXED64,
    VARINT,
    length_prefixed,
    tag,
    text_bytes,
    varint,
)

Write = Callable[[Any, int], bytes]
"""(value, depth) → bytes: a message without its length, or a whole field with its tag."""
Step = tuple[str, bytes, Write]
"""A field's JSON name, the bytes for an unset value, and its writer."""


@cache
def encoder(message: str) -> Write:
    """Return the writer of a message by its name (``apps/v1#Deployment``)."""
    shape = shape_of(message)
    if shape in _SPECIAL:
        write = _SPECIAL[shape]
        return lambda value, depth: write(value)
    fields = fields_of(message)
    if shape is MessageShape.LIST:
        return _field(fields[0])
    if shape is MessageShape.SCHEMA_OR_BOOL:
        return _schema_or_bool(fields[1])
    if shape is MessageShape.SCHEMA_OR_LIST:
        return _schema_or_list(*fields)
    inlined = next((field for field in fields if not field.name), None)
    return _object(fields) if inlined is None else _object_with(inlined, fields)


def _object(fields: tuple[MessageField, ...]) -> Write:
    steps: list[Step] = [
        (field.name, _unset(field) if field.always else b"", _field(field)) for field in fields
    ]

    def write(value: Any, depth: int) -> bytes:
        if depth > LIMIT:
            raise ProtobufError(TOO_DEEP)
        out = []
        get = value.get
        for name, unset, field in steps:
            item = get(name)
            if item is not None:
                out.append(field(item, depth))
            elif unset:
                out.append(unset)
        return b"".join(out)

    return write


def _object_with(inlined: MessageField, fields: tuple[MessageField, ...]) -> Write:
    """Return a writer of a message with an inlined message, which takes its fields from the
    parent's JSON."""
    before = _object(tuple(field for field in fields if field.number < inlined.number))
    within = _field(inlined)
    after = _object(tuple(field for field in fields if field.number > inlined.number))
    return lambda value, depth: before(value, depth) + within(value, depth) + after(value, depth)


def _unset(field: MessageField) -> bytes:
    """Return the bytes of an unset required field: zero, or a message of such fields."""
    if field.type in _SCALARS:
        wire, _ = _SCALARS[field.type]
        return tag(field.number, wire) + (bytes(8) if wire == FIXED64 else b"\x00")
    return tag(field.number, BYTES) + length_prefixed(_unset_message(field.type))


def _unset_message(message: str) -> bytes:
    shape = shape_of(message)
    if shape is MessageShape.OBJECT:
        return encoder(message)({}, 0)
    if shape is MessageShape.QUANTITY:
        return special_types.write_quantity("0")
    return special_types.write_int_or_string(0) if shape is MessageShape.INT_OR_STRING else b""


def _field(field: MessageField) -> Write:
    """Return the writer of tag and value, repeated for lists."""
    if field.mapped:
        return _map(field)
    write = _single(field.number, field.type)
    return _repeated(write, field.type) if field.repeated else write


def _single(number: int, type: str) -> Write:
    if type == "string":
        return _text(number)
    if type not in _SCALARS:
        return _message(number, type)
    wire, scalar = _SCALARS[type]
    head = tag(number, wire)
    return lambda value, depth: head + scalar(value)


def _text(number: int) -> Write:
    head = tag(number, BYTES)

    def write(value: Any, depth: int) -> bytes:
        data = text_bytes(value)
        return head + varint(len(data)) + data

    return write


def _message(number: int, message: str) -> Write:
    """Return a writer that compiles the message's writer on first use."""
    head = tag(number, BYTES)
    body: Write | None = None

    def write(value: Any, depth: int) -> bytes:
        nonlocal body
        if body is None:
            body = encoder(message)
        data = body(value, depth + 1)
        return head + varint(len(data)) + data

    return write


def _repeated(write: Write, type: str) -> Write:
    """Return a writer of a list; a null item is a zero value."""
    empty: Any = {} if type not in _SCALARS and shape_of(type) is MessageShape.OBJECT else None

    def write_all(values: Any, depth: int) -> bytes:
        return b"".join([write(empty if value is None else value, depth) for value in values])

    return write_all


def _map(field: MessageField) -> Write:
    """Return a writer of map entries, sorted by key."""
    head = tag(field.number, BYTES)
    key, item = _text(1), _single(2, field.type)

    def write(values: Any, depth: int) -> bytes:
        out = []
        for name, value in sorted(values.items()):
            entry = key(name, depth)
            if value is not None:
                entry += item(value, depth)
            out.append(head + varint(len(entry)) + entry)
        return b"".join(out)

    return write


def _schema_or_bool(schema: MessageField) -> Write:
    """Return the writer of ``allows`` and the schema; with a schema ``allows`` is true."""
    within = _message(schema.number, schema.type)

    def write(value: Any, depth: int) -> bytes:
        if isinstance(value, dict):
            return b"\x08\x01" + within(value, depth)
        return b"\x08\x01" if value else b"\x08\x00"

    return write


def _schema_or_list(schema: MessageField, items: MessageField) -> Write:
    within, each = _field(schema), _field(items)

    def write(value: Any, depth: int) -> bytes:
        return within(value, depth) if isinstance(value, dict) else each(value, depth)

    return write


def _bytes(value: Any) -> bytes:
    """Decode base64; like Go, skip line ends."""
    text = value.replace("\n", "").replace("\r", "")
    return length_prefixed(a2b_base64(text, strict_mode=True))


def _double(value: Any) -> bytes:
    return pack("<d", value)


def _bool(value: Any) -> bytes:
    return b"\x01" if value else b"\x00"


_SCALARS: dict[str, tuple[int, Callable[[Any], bytes]]] = {
    "string": (BYTES, lambda value: length_prefixed(text_bytes(value))),
    "bytes": (BYTES, _bytes),
    "bool": (VARINT, _bool),
    "int32": (VARINT, varint),
    "int64": (VARINT, varint),
    "double": (FIXED64, _double),
}
_SPECIAL: dict[MessageShape, Callable[[Any], bytes]] = {
    MessageShape.TIME: special_types.write_time,
    MessageShape.MICRO_TIME: special_types.write_micro_time,
    MessageShape.QUANTITY: special_types.write_quantity,
    MessageShape.INT_OR_STRING: special_types.write_int_or_string,
    MessageShape.RAW: special_types.write_raw,
}
