"""Protobuf decoder: messages to JSON values, with one compiled reader per message.

Called by ``envelope.py``. Values are as in Go's JSON: zero values are left out unless the type
always shows them; unknown fields are skipped. Readers pass positions instead of slices, so decoding
is linear however deep messages nest. An empty message of two bytes may become a hundred bytes of
JSON, so the size of the resulting JSON is counted while messages are read.

If a message is truncated, a reader may read bytes after its end; it detects that at the end and
raises, so the values are never used.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache
from math import isfinite
from struct import unpack
from typing import Any

from instar.base.errors import RequestTooLarge
from instar.base.json_values import Object, copy_json
from instar.base.limits import MAX_STORED
from instar.kube.api.encoding.go_text import GO_TEXT
from instar.kube.facts.messages import MessageField, fields_of
from instar.kube.protobuf import special_types
from instar.kube.protobuf.errors import ProtobufError
from instar.kube.protobuf.json_forms import (
    LIMIT,
    SCALARS,
    TOO_DEEP,
    MessageShape,
    shape_of,
    unset_object,
    unset_value,
)
from instar.kube.protobuf.wire import (
    BYTES,
    END,
    FIXED64,
    VARINT,
    int32,
    int64,
    read_size,
    read_varint,
    skip,
    unknown_field,
)

Read = Callable[[bytes, int, int, int], Any]
"""(data, start, end, depth) → a delimited value; None when it stands for nothing."""
Absorb = Callable[[Object, bytes, int, int, int], None]
"""(object, data, start, end, depth): stores a delimited value in the object."""

Entry = tuple[int, str, bool, Any]
"""Action for a field, its JSON name, whether an explicit zero counts (a pointer in Go), and its
function: a ``Read``, an ``Absorb``, or a conversion of a number."""

TEXT, MESSAGE, ABSORBED, UNMADE, NUMBER, NUMBERS, DOUBLE = range(7)
"""Actions for fields. Texts and messages are the most common, hence their own cases. Readers of
messages are created on first use, because most are never needed."""


_LEAST_WEIGHT = 16
"""Bytes counted for any message: an empty one has two in a list."""


class DecodedSizeLimit(threading.local):
    """Remaining size limit of the JSON decoded from one body, per thread."""

    left = MAX_STORED


ROOM = DecodedSizeLimit()


@cache
def decoder(message: str) -> Read:
    """Return the reader of a message by its name (``apps/v1#Deployment``)."""
    shape = shape_of(message)
    if shape in _SPECIAL:
        return _SPECIAL[shape]
    fields = fields_of(message)
    if shape is MessageShape.LIST:
        items = _object(message, fields)
        return lambda data, at, end, depth: items(data, at, end, depth).get("items", [])
    if shape is MessageShape.SCHEMA_OR_BOOL:
        return _schema_or_bool(message, *fields)
    if shape is MessageShape.SCHEMA_OR_LIST:
        return _schema_or_list(message, *fields)
    return _object(message, fields)


def _object(message: str, fields: tuple[MessageField, ...]) -> Read:
    entries = {tag: entry for field in fields for tag, entry in _entries(field)}
    names = {field.number: _go_name(field.name) for field in fields}
    shown = _always_shown(fields)
    weight = _LEAST_WEIGHT + len(json.dumps(dict(shown)))
    own_name = message.partition("#")[2]

    def read(data: bytes, at: int, end: int, depth: int) -> Object:
        if depth > LIMIT:
            raise ProtobufError(TOO_DEEP)
        left = ROOM.left = ROOM.left - weight
        if left < 0:
            raise RequestTooLarge(f"as JSON the object has more than {MAX_STORED} bytes")
        result: Object = {}
        while at < end:
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag, at = read_varint(data, at - 1)
            entry = entries.get(tag)
            if entry is None:
                at = unknown_field(data, at, end, tag, names, own_name)
                continue
            kind, name, keep, how = entry
            if kind >= NUMBER:
                if kind == DOUBLE:
                    result[name] = how(data[at : at + 8])
                    at += 8
                    continue
                number = data[at]
                at += 1
                if number > 0x7F:
                    number, at = read_varint(data, at - 1)
                if kind == NUMBERS:
                    result.setdefault(name, []).append(how(number))
                elif number or keep:
                    result[name] = how(number)
                continue
            stop = at + data[at] + 1
            at += 1
            if stop > at + 0x7F:
                at, stop = read_size(data, at - 1, end)
            elif stop > end:
                raise ProtobufError(END)
            if kind == TEXT:
                if at < stop or keep:
                    result[name] = data[at:stop].decode("utf-8", GO_TEXT)
            elif kind == ABSORBED:
                how(result, data, at, stop, depth + 1)
            else:
                if kind == UNMADE:
                    how = decoder(how)
                    entries[tag] = (MESSAGE, name, keep, how)
                value = how(data, at, stop, depth + 1)
                if value is not None:
                    result[name] = value
            at = stop
        if at != end:
            raise ProtobufError(END)
        for name, value in shown:
            if name not in result:
                result[name] = copy_json(value)
        return result

    return read


def _entries(field: MessageField) -> Iterator[tuple[int, Entry]]:
    """Yield the tags that a field may have, and their actions."""
    delimited, keep = field.number << 3 | BYTES, not field.always
    if field.mapped:
        yield delimited, (ABSORBED, field.name, keep, _into_map(field))
    elif field.type in _NUMBERS:
        wire, number = _NUMBERS[field.type]
        kind = NUMBERS if field.repeated else DOUBLE if wire == FIXED64 else NUMBER
        yield field.number << 3 | wire, (kind, field.name, keep, number)
        if field.repeated:
            yield delimited, (ABSORBED, field.name, keep, _into_packed(field.name, number))
    elif field.repeated:
        yield (
            delimited,
            (ABSORBED, field.name, keep, _into_list(field.name, _lazy_reader(field.type))),
        )
    elif not field.name:
        yield delimited, (ABSORBED, field.name, keep, _into_parent(_lazy_reader(field.type)))
    elif field.type == "string":
        yield delimited, (TEXT, field.name, keep, None)
    elif field.type == "bytes":
        yield delimited, (ABSORBED, field.name, keep, _into_blob(field))
    else:
        yield delimited, (UNMADE, field.name, keep, field.type)


def _lazy_reader(type: str) -> Read:
    """Return a reader that compiles the message's reader on first use."""
    if type in SCALARS:
        return _text if type == "string" else _blob
    own: Read | None = None

    def read(data: bytes, at: int, end: int, depth: int) -> Any:
        nonlocal own
        if own is None:
            own = decoder(type)
        return own(data, at, end, depth)

    return read


def _text(data: bytes, at: int, end: int, depth: int) -> str:
    return data[at:end].decode("utf-8", GO_TEXT)


def _blob(data: bytes, at: int, end: int, depth: int) -> str:
    return b64encode(data[at:end]).decode()


def _into_list(name: str, read: Read) -> Absorb:
    def absorb(result: Object, data: bytes, at: int, end: int, depth: int) -> None:
        value = read(data, at, end, depth)
        found = result.get(name)
        if found is None:
            result[name] = [value]
        else:
            found.append(value)

    return absorb


def _into_parent(read: Read) -> Absorb:
    def absorb(result: Object, data: bytes, at: int, end: int, depth: int) -> None:
        result.update(read(data, at, end, depth))

    return absorb


def _into_blob(field: MessageField) -> Absorb:
    """Return the reader of bytes: empty and absent are equal in Go's JSON, unless always shown."""

    def absorb(result: Object, data: bytes, at: int, end: int, depth: int) -> None:
        if at < end or field.shown:
            result[field.name] = _blob(data, at, end, depth)

    return absorb


def _into_packed(name: str, number: Callable[[int], Any]) -> Absorb:
    def absorb(result: Object, data: bytes, at: int, end: int, depth: int) -> None:
        found = result.setdefault(name, [])
        while at < end:
            value, at = read_varint(data, at)
            found.append(number(value))
        if at != end:
            raise ProtobufError(END)

    return absorb


def _into_map(field: MessageField) -> Absorb:
    name, read = field.name, _lazy_reader(field.type)

    def absorb(result: Object, data: bytes, at: int, end: int, depth: int) -> None:
        key, at, end = _entry(data, at, end)
        found = result.get(name)
        if found is None:
            found = result[name] = {}
        found[key] = read(data, at, end, depth)

    return absorb


def _entry(data: bytes, at: int, end: int) -> tuple[str, int, int]:
    """Return a map entry's key and the position of its value. Missing parts are empty."""
    key, start, stop = "", at, at
    while at < end:
        tag = data[at]
        if tag == _KEY:
            first, at = read_size(data, at + 1, end)
            key = data[first:at].decode("utf-8", GO_TEXT)
        elif tag == _VALUE:
            start, stop = read_size(data, at + 1, end)
            at = stop
        else:
            tag, at = read_varint(data, at)
            at = skip(data, at, end, tag)
    if at != end:
        raise ProtobufError(END)
    return key, start, stop


def _schema_or_bool(message: str, allows: MessageField, schema: MessageField) -> Read:
    parts = _object(message, (allows._replace(name="allows"), schema._replace(name="schema")))

    def read(data: bytes, at: int, end: int, depth: int) -> Any:
        found = parts(data, at, end, depth)
        return found["schema"] if "schema" in found else found.get("allows", False)

    return read


def _schema_or_list(message: str, schema: MessageField, items: MessageField) -> Read:
    parts = _object(message, (schema._replace(name="schema"), items._replace(name="items")))

    def read(data: bytes, at: int, end: int, depth: int) -> Any:
        found = parts(data, at, end, depth)
        return found["items"] if "items" in found else found.get("schema")

    return read


def _always_shown(fields: tuple[MessageField, ...]) -> list[tuple[str, Any]]:
    shown: list[tuple[str, Any]] = []
    for field in fields:
        if field.shown:
            shown.append((field.name, unset_value(field)))
        elif not field.name:
            shown += unset_object(field.type).items()
    return shown


def _go_name(name: str) -> str:
    return "ObjectMeta" if name == "metadata" else name[:1].upper() + name[1:]


def _double(data: bytes) -> int | float:
    """Convert a double as Go's JSON shows it: a whole number has no decimals."""
    (value,) = unpack("<d", data.ljust(8, b"\x00"))
    if not isfinite(value):
        raise ProtobufError("json: unsupported value: a number that is not finite")
    return int(value) if value.is_integer() and abs(value) < 2**63 else float(value)


_KEY, _VALUE = 1 << 3 | BYTES, 2 << 3 | BYTES
_NUMBERS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "bool": (VARINT, bool),
    "int32": (VARINT, int32),
    "int64": (VARINT, int64),
    "double": (FIXED64, _double),
}
_SPECIAL: dict[MessageShape, Read] = {
    MessageShape.TIME: special_types.read_time,
    MessageShape.MICRO_TIME: special_types.read_micro_time,
    MessageShape.QUANTITY: special_types.read_quantity,
    MessageShape.INT_OR_STRING: special_types.read_int_or_string,
    MessageShape.RAW: special_types.read_raw,
}
