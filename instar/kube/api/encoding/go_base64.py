"""Where Go's base64 decoder gives up, so that complaints name the same byte."""

from __future__ import annotations

_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BREAKS = frozenset(b"\r\n")
_PADDING = ord("=")


def corrupt_at(raw: bytes) -> int:
    """The offset Go names for a text that is no standard base64; its length where it is."""
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
        at = _behind_breaks(raw, at)
        if at == len(raw):
            return at
        if raw[at] != _PADDING:
            return at - 1
        at += 1
    return _behind_breaks(raw, at)


def _behind_breaks(raw: bytes, at: int) -> int:
    while at < len(raw) and raw[at] in _BREAKS:
        at += 1
    return at
