"""Huffman decoder for HPACK (RFC 7541, appendix B).

Used by ``headers.py``. The Huffman code is canonical, so the table has only the code lengths.
Nothing is encoded with it.
"""

from __future__ import annotations

_LENGTHS = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c060a0a0c0d06080b0a0a080b"
    "080606060505050606060606060607080f060c0a0d0607070707070707070707070707070707070707070707"
    "0807080d130d0e060f05060506050606060507070606060506070605050607070707070f0b0e0d1c14161414"
    "1616161716171717171718171818161718171717171516171617171816151416161717151716161815161717"
    "151516151716171714161616171616171a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a"
    "1c1b1b1b14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a1e"
)
"""Code length of each byte; the last is EOS, of which only leading bits may appear as padding."""
_END_SYMBOL = 256
_MOST_PADDING = 7


class Garbled(ValueError):
    """Not a valid header block."""


def _codes() -> dict[tuple[int, int], int]:
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


_CODES = _codes()


def decode(data: bytes) -> bytes:
    """Decode bit by bit: texts are short, and repeated blocks are cached. Raises ``Garbled``."""
    out = bytearray()
    code = bits = 0
    for byte in data:
        for shift in range(7, -1, -1):
            code, bits = code << 1 | byte >> shift & 1, bits + 1
            symbol = _CODES.get((bits, code))
            if symbol is not None:
                if symbol == _END_SYMBOL:
                    raise Garbled("a text that names its own end")
                out.append(symbol)
                code = bits = 0
    if bits > _MOST_PADDING or code != (1 << bits) - 1:
        raise Garbled("a text that ends in the middle of a letter")
    return bytes(out)
