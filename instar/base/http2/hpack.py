"""HPACK header blocks (RFC 7541): decodes with the sender's dynamic table, encodes without one.

Each connection of ``server/http/http2`` has a ``HeaderDecoder``; ``wire/rpc`` uses one without a
table. What the headers mean is decided there.
"""

from __future__ import annotations

from instar.base.http2 import huffman
from instar.base.http2.huffman import Garbled

Field = tuple[bytes, bytes]

TABLE_BYTES = 4096
"""Size of the dynamic table unless settings change it; also the only size that we allow."""
_ENTRY_BYTES = 32
"""What an entry counts besides its text."""
_LONGEST_NUMBER = 4
"""Limit of continuation bytes of an integer."""

# The part of the static table (appendix A) that has values.
_VALUES = {
    2: (b":method", b"GET"),
    3: (b":method", b"POST"),
    4: (b":path", b"/"),
    5: (b":path", b"/index.html"),
    6: (b":scheme", b"http"),
    7: (b":scheme", b"https"),
    8: (b":status", b"200"),
    9: (b":status", b"204"),
    10: (b":status", b"206"),
    11: (b":status", b"304"),
    12: (b":status", b"400"),
    13: (b":status", b"404"),
    14: (b":status", b"500"),
    16: (b"accept-encoding", b"gzip, deflate"),
}
STATIC_NAMES = bytes.split(
    b":authority :method :method :path :path :scheme :scheme :status :status :status :status "
    b":status :status :status accept-charset accept-encoding accept-language accept-ranges accept "
    b"access-control-allow-origin age allow authorization cache-control content-disposition "
    b"content-encoding content-language content-length content-location content-range content-type "
    b"cookie date etag expect expires from host if-match if-modified-since if-none-match if-range "
    b"if-unmodified-since last-modified link location max-forwards proxy-authenticate "
    b"proxy-authorization range referer refresh retry-after server set-cookie "
    b"strict-transport-security transfer-encoding user-agent vary via www-authenticate"
)
_STATIC = tuple(
    _VALUES.get(index) or (name, b"") for index, name in enumerate(STATIC_NAMES, start=1)
)
_MOST_STATIC = len(_STATIC)
_INDEX_OF = {name: index for index, name in reversed([*enumerate(STATIC_NAMES, start=1)])}


def literal(name: bytes, value: bytes) -> bytes:
    """Encode one header so that no table changes."""
    index = _INDEX_OF.get(name)
    if index is None:
        return b"\x00" + _text(name) + _text(value)
    return _number(index, 4) + _text(value)


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


class HeaderDecoder:
    """The decoder of one connection: its dynamic table is what earlier blocks have added."""

    __slots__ = ("_allowed", "_entries", "_most", "_size")

    def __init__(self, table_bytes: int = TABLE_BYTES) -> None:
        self._allowed = self._most = table_bytes
        self._entries: list[Field] = []
        """The newest is the last."""
        self._size = 0

    def decode(self, block: bytes, most: int) -> list[Field] | None:
        """Return the headers; None if they take more than ``most`` bytes. The table is kept in
        either case, so that the next block can be read. Raises ``Garbled``."""
        found: list[Field] = []
        at, end, size = 0, len(block), 0
        while at < end:
            first = block[at]
            if first & 0xE0 == 0x20:
                at = self._resize(block, at)
                continue
            if first & 0x80:
                index, at = (first & 0x7F, at + 1) if first != 0xFF else _read_number(block, at, 7)
                field = self._entry(index)
            else:
                field, at = self._read_literal(block, at, first)
            size += len(field[0]) + len(field[1]) + _ENTRY_BYTES
            if size <= most:
                found.append(field)
        return found if size <= most else None

    def _entry(self, index: int) -> Field:
        if not index:
            raise Garbled("a header without a number")
        if index <= _MOST_STATIC:
            return _STATIC[index - 1]
        if index - _MOST_STATIC > len(self._entries):
            raise Garbled(f"header {index} of a table that has fewer")
        return self._entries[_MOST_STATIC - index]

    def _read_literal(self, block: bytes, at: int, first: int) -> tuple[Field, int]:
        index, at = _read_number(block, at, 6 if first & 0x40 else 4)
        if index:
            name = self._entry(index)[0]
        else:
            name, at = _read_text(block, at)
        value, at = _read_text(block, at)
        field = name, value
        if first & 0x40:
            self._entries.append(field)
            self._size += len(name) + len(value) + _ENTRY_BYTES
            if self._size > self._most:
                self._evict()
        return field, at

    def _resize(self, block: bytes, at: int) -> int:
        size, at = _read_number(block, at, 5)
        if size > self._allowed:
            raise Garbled("a table larger than allowed")
        self._most = size
        self._evict()
        return at

    def _evict(self) -> None:
        gone = 0
        while self._size > self._most:
            name, value = self._entries[gone]
            self._size -= len(name) + len(value) + _ENTRY_BYTES
            gone += 1
        del self._entries[:gone]


def _read_text(block: bytes, at: int) -> tuple[bytes, int]:
    if at >= len(block):
        raise Garbled("a header block that ends too soon")
    packed = block[at] & 0x80
    size, at = _read_number(block, at, 7)
    if at + size > len(block):
        raise Garbled("a header block that ends too soon")
    data = block[at : at + size]
    return (huffman.decode(data) if packed else data), at + size


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
