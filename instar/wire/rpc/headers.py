"""Headers of gRPC calls, as text.

Used by ``channel.py``, ``connection.py`` and ``stream.py``. We advertise a table size of 0 and use
no table of the server, so a block always means the same, and repeated blocks are parsed once.
"""

from __future__ import annotations

from functools import lru_cache

from instar.base.http2 import hpack
from instar.base.http2.huffman import Garbled

Headers = tuple[tuple[str, str], ...]

MOST_BYTES = 16 << 10
"""Limit of an encoded and of a decoded block."""


def literal(name: str, value: str) -> bytes:
    """Encode one header as a literal."""
    return hpack.literal(name.encode(), value.encode())


@lru_cache(64)
def read(block: bytes) -> Headers:
    """Decode a block. Raises ``Garbled``."""
    found = hpack.HeaderDecoder(0).decode(block, MOST_BYTES)
    if found is None:
        raise Garbled("headers without end")
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in found)
