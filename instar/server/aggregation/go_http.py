"""What Go's net/http does to a request that it passes on: query and header names are written anew.

``request_head.py`` uses it. Pure functions on bytes and text.
"""

from __future__ import annotations

from urllib.parse import quote_plus, unquote_to_bytes

_TOKEN = frozenset(b"!#$&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~")
"""Bytes of a header name that stay as they are; the percent sign is escaped, too."""


def encode_query(raw: bytes) -> str:
    """The query as ``url.Values.Encode`` writes it: parameters sorted by name, each with ``=``.
    A parameter that Go cannot read, such as one with a semicolon, is left out."""
    values: dict[bytes, list[bytes]] = {}
    for part in raw.split(b"&"):
        if not part or b";" in part:
            continue
        name, _, value = part.partition(b"=")
        if _is_escaped_well(name) and _is_escaped_well(value):
            values.setdefault(_unescape(name), []).append(_unescape(value))
    return "&".join(
        f"{quote_plus(name, safe='')}={quote_plus(value, safe='')}"
        for name, found in sorted(values.items())
        for value in found
    )


def _unescape(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))


def _is_escaped_well(text: bytes) -> bool:
    _, *escapes = text.split(b"%")
    return all(len(one) >= 2 and _is_hex(one[:2]) for one in escapes)


def _is_hex(two: bytes) -> bool:
    return all(byte in b"0123456789abcdefABCDEF" for byte in two)


def escape_header_key(key: str) -> str:
    """The key of an extra as the end of a header name."""
    return "".join(chr(byte) if byte in _TOKEN else f"%{byte:02x}" for byte in key.lower().encode())


def is_header_value(value: bytes) -> bool:
    """Whether Go sends these bytes as a header value: no control characters but the tab."""
    return not any((byte < 0x20 and byte != 0x09) or byte == 0x7F for byte in value)
