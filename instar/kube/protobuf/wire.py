"""Protobuf wire format primitives: varints, tags, lengths.

Used by ``encoding.py`` and ``decoding.py``, by ``kube/openapi/protobuf/messages.py`` and by the
etcd client (``wire/storage/etcd/messages.py``).
"""

from __future__ import annotations

from instar.kube.protobuf.errors import ProtobufError

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
END = "unexpected EOF"
_OVERFLOW = "proto: integer overflow"
_NEGATIVE_LENGTH = "proto: negative length found during unmarshaling"
_MASK = 2**64 - 1
_SIGN32, _WRAP32 = 1 << 31, 1 << 32
_SIGN64, _WRAP64 = 1 << 63, 1 << 64
_ONE_BYTE = [bytes((value,)) for value in range(0x80)]


def varint(value: int) -> bytes:
    """Encode a varint; negative numbers take ten bytes."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number: int, wire: int) -> bytes:
    """Return the key that precedes a field: its number and wire type."""
    return varint(number << 3 | wire)


def length_prefixed(body: bytes) -> bytes:
    return varint(len(body)) + body


def text_bytes(text: str) -> bytes:
    """Encode UTF-8; half a surrogate pair becomes U+FFFD, as when Go reads JSON."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return (unsigned value, end position). Raises ``IndexError`` beyond the end of the data."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at
        shift += 7
    raise ProtobufError(_OVERFLOW)


def read_size(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Read a length; return (start, end) of the content, within ``end``."""
    size = data[at]
    at += 1
    if size > 0x7F:
        size, at = read_varint(data, at - 1)
    if size + at >= _SIGN64:
        raise ProtobufError(_NEGATIVE_LENGTH)
    if at + size > end:
        raise ProtobufError(END)
    return at, at + size


def int32(value: int) -> int:
    value &= _WRAP32 - 1
    return value - _WRAP32 if value & _SIGN32 else value


def int64(value: int) -> int:
    return value - _WRAP64 if value & _SIGN64 else value


def skip(data: bytes, at: int, end: int, tag: int) -> int:
    """Return the end of an unknown field; ``at`` is the position after its tag. Groups are skipped
    as a whole."""
    depth = 0
    while True:
        wire = tag & 7
        if wire == VARINT:
            _, at = read_varint(data, at)
        elif wire == BYTES:
            _, at = read_size(data, at, end)
        elif wire in (FIXED64, FIXED32):
            at += 8 if wire == FIXED64 else 4
        elif wire == START_GROUP:
            depth += 1
        elif wire == END_GROUP:
            depth -= 1
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        if at > end:
            raise ProtobufError(END)
        if depth == 0:
            return at
        tag, at = read_varint(data, at)


def unknown_field(
    data: bytes, at: int, end: int, tag: int, known: dict[int, str], name: str
) -> int:
    """Skip a field with an unexpected tag, or raise.

    ``known`` maps field numbers to names: such a field has the wrong wire type here.
    """
    number, wire = int32(tag >> 3), tag & 7
    if wire == END_GROUP:
        raise ProtobufError(f"proto: {name}: wiretype end group for non-group")
    if number <= 0:
        raise ProtobufError(f"proto: {name}: illegal tag {number} (wire type {wire})")
    if number in known:
        raise ProtobufError(f"proto: wrong wireType = {wire} for field {known[number]}")
    return skip(data, at, end, tag)
