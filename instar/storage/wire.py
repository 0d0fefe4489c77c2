"""Fields of protobuf messages, for the few written and read by hand: etcd's, a KMS plugin's.

Knows the wire format and no message.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.protobuf.wire import read_varint, varint

_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5
Field = tuple[int, "int | bytes"]


def always_int(number: int, value: int) -> bytes:
    return varint(number << 3 | _VARINT) + varint(value)


def int_field(number: int, value: int) -> bytes:
    return always_int(number, value) if value else b""


def always_bytes(number: int, value: bytes) -> bytes:
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def bytes_field(number: int, value: bytes) -> bytes:
    return always_bytes(number, value) if value else b""


def fields(data: bytes) -> Iterator[Field]:
    """Each field's number and its value: an integer, or the bytes of anything longer."""
    at, end = 0, len(data)
    while at < end:
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            size, at = read_varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        elif kind == _VARINT:
            value, at = read_varint(data, at)
            yield tag >> 3, value
        elif kind in (_I64, _I32):
            at += 8 if kind == _I64 else 4
        else:
            raise ValueError(f"wire type {kind} in a message")


def as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message belongs")
    return value


def as_int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("a message where a number belongs")
    return value
