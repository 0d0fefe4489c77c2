"""Writes CBOR as kube-apiserver does: every document begins with the tag of self-described CBOR,
texts and keys are byte strings, numbers take their shortest form.

``server/rest`` calls it for responses and watch events. Values are JSON's, and ``bytes`` for the
binary fields of built-in kinds (``kube/protobuf/byte_fields.py``).
"""

from __future__ import annotations

from struct import pack, unpack
from typing import Any

SELF_DESCRIBED = b"\xd9\xd9\xf7"
"""The head of tag 55799, by which readers recognize CBOR."""
_BASE64_LATER = b"\xd6"
"""Tag 22: a reader that needs a text gets the base64 text of these bytes."""
_POSITIVE, _NEGATIVE, _BYTES, _ARRAY, _MAP = (major << 5 for major in (0, 1, 2, 4, 5))
_SHORTEST = 24
_FLOATS = ((">e", b"\xf9"), (">f", b"\xfa"))


class Encoded(bytes):
    """An item that is CBOR already."""


def write_cbor(value: Any) -> bytes:
    """Encode a document."""
    return SELF_DESCRIBED + write_item(value)


def write_item(value: Any) -> Encoded:
    """Encode a part of a document."""
    out: list[bytes] = []
    _write(value, out)
    return Encoded(b"".join(out))


def _write(value: Any, out: list[bytes]) -> None:
    if isinstance(value, str):
        _write_text(value, out)
    elif isinstance(value, dict):
        out.append(_head(_MAP, len(value)))
        for name, item in value.items():
            _write_text(name, out)
            _write(item, out)
    elif isinstance(value, list):
        out.append(_head(_ARRAY, len(value)))
        for item in value:
            _write(item, out)
    elif isinstance(value, Encoded):
        out.append(value)
    elif isinstance(value, bytes):
        out += (_BASE64_LATER, _head(_BYTES, len(value)), value)
    else:
        out.append(_scalar(value))


def _write_text(value: str, out: list[bytes]) -> None:
    data = value.encode()
    out.append(_head(_BYTES, len(data)))
    out.append(data)


def _scalar(value: float | bool | None) -> bytes:
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _head(_POSITIVE, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
    return _float(value)


def _float(value: float) -> bytes:
    for form, head in _FLOATS:
        try:
            data = pack(form, value)
        except OverflowError:
            continue
        if unpack(form, data)[0] == value:
            return head + data
    return b"\xfb" + pack(">d", value)


def _head(major: int, number: int) -> bytes:
    """The head of an item: its type, and its value or length."""
    if number < _SHORTEST:
        return bytes((major | number,))
    if number < 1 << 8:
        return pack(">BB", major | 24, number)
    if number < 1 << 16:
        return pack(">BH", major | 25, number)
    if number < 1 << 32:
        return pack(">BI", major | 26, number)
    return pack(">BQ", major | 27, number)
