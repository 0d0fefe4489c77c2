"""DER encoder for the ASN.1 types that certificates and keys use: values in, bytes out.

Called only by ``certificates.py``.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime

_SHORT_YEARS = 2050
"""Times before this year are written with two digits of the year (UTCTime)."""
TRUE = b"\x01\x01\xff"
NULL = b"\x05\x00"


def tagged(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + content


def sequence(*parts: bytes) -> bytes:
    return tagged(0x30, *parts)


def set_of(part: bytes) -> bytes:
    return tagged(0x31, part)


def integer(value: int) -> bytes:
    """Encode a non-negative integer."""
    return tagged(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def octets(content: bytes) -> bytes:
    return tagged(0x04, content)


def bits(content: bytes, unused: int = 0) -> bytes:
    return tagged(0x03, bytes((unused,)), content)


def utf8(text: str) -> bytes:
    return tagged(0x0C, text.encode())


def explicit(number: int, content: bytes) -> bytes:
    """Wrap the content in an explicit context tag."""
    return tagged(0xA0 | number, content)


def implicit(number: int, content: bytes) -> bytes:
    """Replace the content's own tag by a context tag."""
    return tagged(0x80 | number, content)


def oid(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    return tagged(0x06, *map(_base128, (40 * first + second, *rest)))


def time(moment: datetime) -> bytes:
    """Encode a time to the second, in UTC."""
    if moment.year < _SHORT_YEARS:
        return tagged(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())
    return tagged(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())


def pem(label: str, der: bytes) -> bytes:
    text = b64encode(der).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----\n")).encode()


def _base128(value: int) -> bytes:
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(0x80 | value & 0x7F)
    return bytes(reversed(digits))
