"""JSON Web Tokens as text: parsed without verification, and assembled for signing.

``issuer.py`` and ``oidc/issuer.py`` call it; signatures are in ``keys.py``.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple

import orjson

_LONGEST = 32 << 10
"""Longest token that is parsed, in characters; longer headers are refused anyway."""


class Jwt(NamedTuple):
    """Header and claims of a token, not verified."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes

    @property
    def issuer(self) -> str:
        return text_of(self.claims.get("iss"))

    @property
    def key_id(self) -> str:
        return text_of(self.header.get("kid"))

    @property
    def algorithm(self) -> str:
        return text_of(self.header.get("alg"))


def read(token: str) -> Jwt | None:
    """Parse a token; None if the text is not a signed token."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > _LONGEST:
        return None
    try:
        header, claims = (orjson.loads(decode_base64url(part)) for part in parts[:2])
        signature = decode_base64url(parts[2])
    except (ValueError, binascii.Error):
        return None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        return None
    if "crit" in header:  # it requires extensions, and none is implemented here
        return None
    return Jwt(header, claims, f"{parts[0]}.{parts[1]}".encode(), signature)


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> bytes:
    """The bytes to sign."""
    parts = (
        encode_base64url(orjson.dumps(part, option=orjson.OPT_SORT_KEYS))
        for part in (header, claims)
    )
    return ".".join(parts).encode()


def append_signature(content: bytes, signature: bytes) -> str:
    return f"{content.decode()}.{encode_base64url(signature)}"


def encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Raises ``ValueError`` for anything but unpadded base64url."""
    if "=" in text:
        raise ValueError("padded")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def text_of(value: Any) -> str:
    """A claim that should be a text; empty for anything else."""
    return value if isinstance(value, str) else ""


def texts_of(value: Any) -> tuple[str, ...]:
    """A claim that is a text or a list of them (``aud``)."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return ()


def seconds_of(value: Any) -> float | None:
    """A point in time, in seconds since 1970."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
