"""A ``Status`` in Kubernetes' protobuf envelope, for clients that accept nothing else.

Only errors are ever written this way: custom resources have no protobuf form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.varint import varint

_MAGIC = b"k8s\x00"


def encode_status(status: Mapping[str, Any]) -> bytes:
    type_meta = _text(1, status["apiVersion"]) + _text(2, status["kind"])
    return _MAGIC + _bytes(1, type_meta) + _bytes(2, _status(status))


def _status(status: Mapping[str, Any]) -> bytes:
    listed = status.get("metadata") or {}
    meta = _text(1, "") + _text(2, "") + _text(3, listed.get("continue", ""))
    out = _bytes(1, meta) + _text(2, status.get("status", "")) + _text(3, status.get("message", ""))
    out += _text(4, status.get("reason", ""))
    if "details" in status:
        out += _bytes(5, _details(status["details"]))
    return out + _number(6, status.get("code", 0))


def _details(details: Mapping[str, Any]) -> bytes:
    out = b"".join(
        _text(position, details.get(name, ""))
        for position, name in enumerate(("name", "group", "kind"), start=1)
    )
    for cause in details.get("causes", ()):
        texts = (cause.get("reason", ""), cause.get("message", ""), cause.get("field", ""))
        out += _bytes(4, b"".join(_text(at, text) for at, text in enumerate(texts, start=1)))
    return out + _number(5, details.get("retryAfterSeconds", 0)) + _text(6, details.get("uid", ""))


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode("utf-8", "replace"))


def _bytes(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)
