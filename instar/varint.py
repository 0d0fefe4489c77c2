"""Numbers as protobuf writes them: seven bits to a byte, the last byte below 128.

For every wire format of ours; what the numbers mean is theirs.
"""

from __future__ import annotations

_MASK = 2**64 - 1
_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


class TooLong(ValueError):
    """A number of more than 64 bits."""


def varint(value: int) -> bytes:
    """Negative numbers take ten bytes."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned number at a place, and where it ends. ``IndexError`` if the data ends first."""
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
    raise TooLong("a number of more than 64 bits")
