"""Position at which Go's base64 decoder fails, for error messages that name the same byte.

Called by the typed decoders (``crd_decode.py``, ``kube/typed``).
"""

from __future__ import annotations

_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BREAKS = frozenset(b"\r\n")
_PADDING = ord("=")


def corrupt_at(raw: bytes) -> int:
    """Return the offset that Go names for invalid standard base64; the text's length if it is
    valid."""
    at = filled = 0
    while at < len(raw):
        byte = raw[at]
        at += 1
        if byte in _ALPHABET:
            filled = (filled + 1) % 4
        elif byte == _PADDING and filled >= 2:
            return _after_padding(raw, at, filled)
        elif byte not in _BREAKS:
            return at - 1
    return at - filled


def _after_padding(raw: bytes, at: int, filled: int) -> int:
    if filled == 2:
        at = _skip_line_breaks(raw, at)
        if at == len(raw):
            return at
        if raw[at] != _PADDING:
            return at - 1
        at += 1
    return _skip_line_breaks(raw, at)


def _skip_line_breaks(raw: bytes, at: int) -> int:
    while at < len(raw) and raw[at] in _BREAKS:
        at += 1
    return at
