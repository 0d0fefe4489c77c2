"""Protobuf encoding of OpenAPI documents as gnostic defines them: what v2 and v3 share.

``v2_document.py`` and ``v3_document.py`` call it with tables from JSON key to field number and
writer.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

from instar.kube.protobuf.wire import BYTES, FIXED64, VARINT, varint

Json = Mapping[str, Any]
Writer = Callable[[int, Any], bytes]


_VARINTS = [varint(value) for value in range(0x4000)]
"""Nearly every length and all tags; a document has half a million of them."""
_BYTES_TAGS = [varint(number << 3 | BYTES) for number in range(40)]


def varint_of(value: int) -> bytes:
    return _VARINTS[value] if 0 <= value < 0x4000 else varint(value)


def tag(number: int, wire: int) -> bytes:
    return varint_of(number << 3 | wire)


def delimited(number: int, payload: bytes) -> bytes:
    return _BYTES_TAGS[number] + varint_of(len(payload)) + payload


def text(number: int, value: Any) -> bytes:
    return delimited(number, str(value).encode())


def flag(number: int, value: Any) -> bytes:
    return tag(number, VARINT) + (b"\x01" if value else b"\x00")


def integer(number: int, value: Any) -> bytes:
    return tag(number, VARINT) + varint_of(int(value))


def double(number: int, value: Any) -> bytes:
    return tag(number, FIXED64) + struct.pack("<d", value)


def each(writer: Writer) -> Writer:
    return lambda number, values: b"".join(writer(number, value) for value in values)


def any_value(number: int, value: Any) -> bytes:
    """Encode a free-form value as YAML text: simple ones in the form that clients compare, others
    as JSON, which is valid YAML."""
    lines = _yaml_lines(value)
    return delimited(number, text(2, "\n".join([*(lines or [_json(value)]), ""])))


_EMPTY = '""'
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS = frozenset(("y", "yes", "n", "no", "on", "off", "true", "false", "null"))


def _yaml_lines(value: Any) -> list[str]:
    """Return a text, a truth value, a flat object, or a list of these; empty for other values."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, dict):
        return _members(value)
    if not isinstance(value, list):
        return [value or _EMPTY] if _is_plain(value) else []
    lines: list[str] = []
    for item in value:
        found = [] if isinstance(item, list) else _yaml_lines(item)
        if not found:
            return []
        lines += [f"- {found[0]}", *(f"  {line}" for line in found[1:])]
    return lines


def _members(value: Json) -> list[str]:
    if not all(_is_plain(item) for item in value.values()):
        return []
    return [f"{name}: {value[name] or _EMPTY}" for name in sorted(value)]


def _is_plain(value: Any) -> bool:
    """Return whether YAML reads the bare text as that text; an empty one needs quotes."""
    if not isinstance(value, str):
        return False
    return not value or (_PLAIN.fullmatch(value) is not None and value.lower() not in _WORDS)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def named(number: int, name: str, writer: Writer, value: Any) -> bytes:
    return delimited(number, text(1, name) + writer(2, value))


def pairs(writer: Writer) -> Writer:
    """Encode a JSON object as a message of repeated name and value pairs (field 1)."""

    def write(number: int, values: Any) -> bytes:
        body = b"".join(named(1, name, writer, value) for name, value in values.items())
        return delimited(number, body)

    return write


Table = Mapping[str, tuple[int, Writer]]


def message(value: Json, table: Table, extensions: int = 0) -> bytes:
    """Encode known keys by their field numbers, ``x-`` keys as the field ``extensions``."""
    out: list[bytes] = []
    for key, item in value.items():
        entry = table.get(key)
        if entry is not None:
            out.append(entry[1](entry[0], item))
        elif extensions and key.startswith("x-"):
            out.append(named(extensions, key, any_value, item))
    return b"".join(out)


def nested(table: Callable[[], Table], extensions: int = 0) -> Writer:
    """Encode a nested message; ``table`` is called lazily, so that messages may be recursive."""
    return lambda number, value: delimited(number, message(value, table(), extensions))
