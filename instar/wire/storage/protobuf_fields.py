"""Encodes and decodes single protobuf fields of hand-written messages.

Used by the etcd messages (``etcd/messages.py``) and the KMS plugin calls (``encryption/``), which
define the messages themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.kube.protobuf.errors import ProtobufError
from instar.kube.protobuf.wire import read_varint, varint

_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5
_ONE_BYTE, _TWO_BYTES, _SHORT_NUMBER = 0x80, 0x4000, 16
"""Lengths below the first two take one byte and two bytes; a field number below the last takes
one."""
Field = tuple[int, "int | bytes"]

UNREADABLE = (ValueError, IndexError, ProtobufError)
"""Errors that readers raise for bytes that are not a valid message."""


def always_int(number: int, value: int) -> bytes:
    return varint(number << 3 | _VARINT) + varint(value)


def int_field(number: int, value: int) -> bytes:
    return always_int(number, value) if value else b""


def always_bytes(number: int, value: bytes) -> bytes:
    size = len(value)
    if number < _SHORT_NUMBER and size < _TWO_BYTES:
        if size < _ONE_BYTE:
            return bytes((number << 3 | _BYTES, size)) + value
        return bytes((number << 3 | _BYTES, size & 0x7F | 0x80, size >> 7)) + value
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def bytes_field(number: int, value: bytes) -> bytes:
    return always_bytes(number, value) if value else b""


def fields(data: bytes) -> Iterator[Field]:
    """Yield each field's number and value: an integer, or the bytes of anything longer.

    Most numbers take one byte and are read without a call: one write reads forty of them.
    """
    at, end = 0, len(data)
    while at < end:
        tag = data[at]
        at += 1
        if tag >= _ONE_BYTE:
            tag, at = read_varint(data, at - 1)
        kind = tag & 7
        if kind == _BYTES:
            size = data[at]
            at += 1
            if size >= _ONE_BYTE:
                size, at = read_varint(data, at - 1)
            begin, at = at, at + size
            if at > end:
                raise ValueError("a field goes on after the end of its message")
            yield tag >> 3, data[begin:at]
        elif kind == _VARINT:
            value = data[at]
            at += 1
            if value >= _ONE_BYTE:
                value, at = read_varint(data, at - 1)
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
