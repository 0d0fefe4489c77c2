"""The wire format of protobuf: bytes → numbered fields. Knows no message."""

from __future__ import annotations

from collections.abc import Iterator

from instar.varint import TooLong, read_varint

_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5
_SIGN, _WRAP = 1 << 63, 1 << 64


class ProtobufError(Exception):
    """The bytes are no message of the kind they claim to be."""


def wire_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) in the order of the wire; numbers are signed, the rest are bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value - _WRAP if value & _SIGN else value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_I64, _I32):
            size = 8 if wire == _I64 else 4
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        if at + size > len(data):
            raise ProtobufError("unexpected EOF")
        yield number, data[at : at + size]
        at += size


def as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 0")
    return value


def as_text(value: int | bytes) -> str:
    try:
        return as_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise ProtobufError("proto: invalid UTF-8") from error


def as_number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 2")
    return value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    try:
        return read_varint(data, at)
    except IndexError:
        raise ProtobufError("unexpected EOF") from None
    except TooLong:
        raise ProtobufError("proto: integer overflow") from None
