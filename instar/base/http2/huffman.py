"""Huffman decoder for HPACK (RFC 7541, appendix B).

Used by ``hpack.py``. The Huffman code is canonical, so the module has only the code lengths.
Nothing is encoded with it.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

_LENGTHS = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c060a0a0c0d06080b0a0a080b"
    "080606060505050606060606060607080f060c0a0d0607070707070707070707070707070707070707070707"
    "0807080d130d0e060f05060506050606060507070606060506070605050607070707070f0b0e0d1c14161414"
    "1616161716171717171718171818161718171717171516171617171816151416161717151716161815161717"
    "151516151716171714161616171616171a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a"
    "1c1b1b1b14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a1e"
)
"""Code length of each byte; the last is EOS, of which only leading bits may appear as padding."""
END_SYMBOL = 256
_MOST_PADDING = 7
_CACHED_BYTES = 256
"""Texts up to this size are decoded once while clients repeat them."""


class Garbled(ValueError):
    """Not a valid header block."""


def codes() -> dict[tuple[int, int], int]:
    """Return (bits, code) → symbol: codes count upwards, shorter ones first."""
    order = sorted(range(len(_LENGTHS)), key=lambda symbol: (_LENGTHS[symbol], symbol))
    found: dict[tuple[int, int], int] = {}
    code, bits = 0, _LENGTHS[order[0]]
    for symbol in order:
        code <<= _LENGTHS[symbol] - bits
        bits = _LENGTHS[symbol]
        found[bits, code] = symbol
        code += 1
    return found


class _Machine(NamedTuple):
    """A state is an inner node of the code's tree; half a byte leads from one to the next."""

    following: bytes
    """The state after a state and half a byte."""
    symbols: list[int]
    """The symbol that is complete then, -1 for none: half a byte completes one at most."""
    final: frozenset[int]
    """States in which a text may end: only leading bits of EOS follow the last symbol."""


@cache
def _machine() -> _Machine:
    known = codes()
    inner = {(0, 0): 0}
    for bits, code in known:
        for size in range(1, bits):
            inner.setdefault((size, code >> bits - size), len(inner))
    following, symbols = bytearray(16 * len(inner)), [-1] * (16 * len(inner))
    for (size, prefix), state in inner.items():
        for half in range(16):
            bits, code = size, prefix
            for shift in (3, 2, 1, 0):
                bits, code = bits + 1, code << 1 | half >> shift & 1
                symbol = known.get((bits, code))
                if symbol is not None:
                    symbols[state << 4 | half] = symbol
                    bits = code = 0
            following[state << 4 | half] = inner[bits, code]
    final = frozenset(inner[size, (1 << size) - 1] for size in range(_MOST_PADDING + 1))
    return _Machine(bytes(following), symbols, final)


def decode(data: bytes) -> bytes:
    """Raises ``Garbled``."""
    return _decode_cached(data) if len(data) <= _CACHED_BYTES else _decode(data)


def _decode(data: bytes) -> bytes:
    following, symbols, final = _machine()
    out = bytearray()
    state = 0
    for byte in data:
        high = state << 4 | byte >> 4
        low = following[high] << 4 | byte & 15
        for symbol in (symbols[high], symbols[low]):
            if symbol >= 0:
                if symbol == END_SYMBOL:
                    raise Garbled("a text that names its own end")
                out.append(symbol)
        state = following[low]
    if state not in final:
        raise Garbled("a text that ends in the middle of a letter")
    return bytes(out)


_decode_cached = lru_cache(512)(_decode)
