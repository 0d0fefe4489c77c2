"""Cache of schemas that passed a check without errors, so that they are not checked again.

The decorator ``cache_clean`` decorates the checks in ``structure/structural_rules.py`` and
``kube/crds/validation/unsupported_schema.py``; ``server/registry/resources/serving.py`` uses only
``text_size``. A schema is checked when its CRD is written, when the CRD's status is computed, and
for each published document, and it hardly ever changes. The cache holds a digest of each schema
without errors; a schema with errors is checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from hashlib import blake2b
from typing import Any, Concatenate, ParamSpec, TypeVar

import orjson

from instar.base.weighted_lru import WeightedLru

P = ParamSpec("P")
T = TypeVar("T")
Schema = Mapping[str, Any]
_MAX_SCHEMAS = 20_000
"""Maximum schemas in the cache of each check; a schema takes 150 bytes."""


def cache_clean(
    check: Callable[Concatenate[Schema, P], T],
) -> Callable[Concatenate[Schema, P], T]:
    """Wrap a check with the cache.

    Its other arguments must not change whether it finds anything, and each call gets its own
    result.
    """
    spotless: WeightedLru[bytes, Callable[[], T]] = WeightedLru(_MAX_SCHEMAS)

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
    """Return the approximate size of the schema in bytes of JSON."""
    return len(_text(schema))


def _digest(schema: Schema) -> bytes:
    """Return a digest; empty if the schema cannot be encoded."""
    text = _text(schema)
    return blake2b(text, digest_size=32).digest() if text else b""


def _text(schema: Schema) -> bytes:
    try:
        return orjson.dumps(dict(schema))
    except TypeError:  # integers beyond 64 bits
        return b""
