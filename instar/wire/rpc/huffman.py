"""The Huffman code of HTTP/2's header blocks (RFC 7541, appendix B), to read what others write.

The code is canonical: the length of each symbol's code says all. We write none ourselves.
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
"""Bits of each byte's code; the last is the end of a text, which only its first bits may show."""
_END = 256
_MOST_PADDING = 7


class Garbled(ValueError):
    """Not what the code can mean."""


def _codes() -> dict[tuple[int, int], int]:
    """(bits, code) → symbol: codes count upwards, shorter ones first."""
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
    """Raises ``Garbled``. A bit at a time: texts are short, and the same blocks come again."""
    out = bytearray()
    code = bits = 0
    for byte in data:
        for shift in range(7, -1, -1):
            code, bits = code << 1 | byte >> shift & 1, bits + 1
            symbol = _CODES.get((bits, code))
            if symbol is not None:
                if symbol == _END:
                    raise Garbled("a text that names its own end")
                out.append(symbol)
                code = bits = 0
    if bits > _MOST_PADDING or code != (1 << bits) - 1:
        raise Garbled("a text that ends in the middle of a letter")
    return bytes(out)
