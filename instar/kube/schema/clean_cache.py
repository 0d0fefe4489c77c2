"""Schemas that a check found nothing wrong with are not looked at again.

A CRD's schema is checked when it is written, again when its CRD comes to rest, and for each
document it is published in, and it hardly ever changes. Only "nothing" is remembered, under the
schema's text. Knows none of the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from hashlib import blake2b
from typing import Any, Concatenate, ParamSpec, TypeVar

import orjson

from instar.base.weighted_lru import Remembered

P = ParamSpec("P")
T = TypeVar("T")
Schema = Mapping[str, Any]
_MOST = 20_000
"""Schemas of each check: 150 bytes of memory each."""


def once_spotless(
    check: Callable[Concatenate[Schema, P], T],
) -> Callable[Concatenate[Schema, P], T]:
    """The same check. What it is told besides the schema must not change whether it finds
    anything, and each call gets a result of its own."""
    spotless: Remembered[bytes, Callable[[], T]] = Remembered(_MOST)

    @wraps(check)
    def checked(schema: Schema, /, *args: P.args, **kwargs: P.kwargs) -> T:
        digest = _digest(schema)
        nothing = spotless.get(digest) if digest else None
        if nothing is not None:
            return nothing()
        found = check(schema, *args, **kwargs)
        if not found and digest:
            kind: Callable[[], T] = type(found)
            spotless.put(digest, kind, 1)
        return found

    return checked


def text_size(schema: Schema) -> int:
    """About how large the schema is, in bytes of JSON."""
    return len(_text(schema))


def _digest(schema: Schema) -> bytes:
    """Empty where the schema cannot be written down."""
    text = _text(schema)
    return blake2b(text, digest_size=32).digest() if text else b""


def _text(schema: Schema) -> bytes:
    try:
        return orjson.dumps(dict(schema))
    except TypeError:  # integers beyond 64 bits
        return b""
