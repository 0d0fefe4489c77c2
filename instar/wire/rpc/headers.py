"""HPACK header blocks (RFC 7541) without dynamic tables.

Used by ``channel.py``, ``connection.py`` and ``stream.py``. We advertise a table size of 0 and use
no table of the server, so a block always means the same, and repeated blocks are parsed once.
"""

from __future__ import annotations

from functools import lru_cache

from instar.wire.rpc import huffman
from instar.wire.rpc.huffman import Garbled

Headers = tuple[tuple[str, str], ...]

MOST_BYTES = 16 << 10
"""Limit of an encoded and of a decoded block."""

# The part of the static table (appendix A) that has values.
_VALUES = {
    2: (":method", "GET"),
    3: (":method", "POST"),
    4: (":path", "/"),
    5: (":path", "/index.html"),
    6: (":scheme", "http"),
    7: (":scheme", "https"),
    8: (":status", "200"),
    9: (":status", "204"),
    10: (":status", "206"),
    11: (":status", "304"),
    12: (":status", "400"),
    13: (":status", "404"),
    14: (":status", "500"),
    16: ("accept-encoding", "gzip, deflate"),
}
_NAMES = str.split(
    ":authority :method :method :path :path :scheme :scheme :status :status :status :status "
    ":status :status :status accept-charset accept-encoding accept-language accept-ranges accept "
    "access-control-allow-origin age allow authorization cache-control content-disposition "
    "content-encoding content-language content-length content-location content-range content-type "
    "cookie date etag expect expires from host if-match if-modified-since if-none-match if-range "
    "if-unmodified-since last-modified link location max-forwards proxy-authenticate "
    "proxy-authorization range referer refresh retry-after server set-cookie "
    "strict-transport-security transfer-encoding user-agent vary via www-authenticate"
)
_LONGEST_NUMBER = 4
"""Limit of continuation bytes of an integer."""


def literal(name: str, value: str) -> bytes:
    """Encode one header as a literal."""
    return b"\x00" + _text(name.encode()) + _text(value.encode())


def _text(data: bytes) -> bytes:
    return _number(len(data), 7) + data


def _number(value: int, bits: int) -> bytes:
    most = (1 << bits) - 1
    if value < most:
        return bytes((value,))
    out = bytearray((most,))
    value -= most
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@lru_cache(64)
def read(block: bytes) -> Headers:
    """Decode a block. Raises ``Garbled``."""
    found: list[tuple[str, str]] = []
    at = size = 0
    while at < len(block):
        first = block[at]
        if first & 0xE0 == 0x20:  # dynamic table size update
            table, at = _read_number(block, at, 5)
            if table:
                raise Garbled("a table, though we keep none")
            continue
        header, at = _read_indexed(block, at) if first & 0x80 else _read_literal(block, at)
        found.append(header)
        size += len(header[0]) + len(header[1])
        if size > MOST_BYTES:
            raise Garbled("headers without end")
    return tuple(found)


def _read_indexed(block: bytes, at: int) -> tuple[tuple[str, str], int]:
    index, at = _read_number(block, at, 7)
    return _VALUES.get(index) or (_name(index), ""), at


def _read_literal(block: bytes, at: int) -> tuple[tuple[str, str], int]:
    # "With indexing" makes no difference: the table size is 0.
    index, at = _read_number(block, at, 6 if block[at] & 0x40 else 4)
    if index:
        name = _name(index)
    else:
        name, at = _read_text(block, at)
    value, at = _read_text(block, at)
    return (name, value), at


def _name(index: int) -> str:
    if not 1 <= index <= len(_NAMES):
        raise Garbled(f"header {index} of a table that is not kept")
    return _NAMES[index - 1]


def _read_text(block: bytes, at: int) -> tuple[str, int]:
    if at >= len(block):
        raise Garbled("a header block that ends too soon")
    packed = block[at] & 0x80
    size, at = _read_number(block, at, 7)
    if at + size > len(block):
        raise Garbled("a header block that ends too soon")
    data = block[at : at + size]
    return (huffman.decode(data) if packed else data).decode("latin-1"), at + size


def _read_number(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    for turn in range(_LONGEST_NUMBER):
        if at >= len(block):
            break
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << 7 * turn
        if byte < 0x80:
            return value, at
    raise Garbled("a number without end")
