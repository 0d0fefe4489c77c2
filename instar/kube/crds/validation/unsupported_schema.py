"""Finds JSON schema constructs that cannot be converted to a structural schema.

Called by the CRD validation and before any other code parses a raw schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from instar.kube.schema.clean_cache import cache_clean

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
_UNSUPPORTED_KEYWORDS = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "additionalItems": "additionalItems",
    "patternProperties": "patternProperties",
    "definitions": "definitions",
    "dependencies": "dependencies",
}


@cache_clean
def conversion_problem(schema: Schema) -> str | None:
    """Return the first reason why no structural form can be built, or None."""
    for node in nodes(schema):
        for keyword, shown in _UNSUPPORTED_KEYWORDS.items():
            if node.get(keyword) not in (None, "", {}):
                return f"OpenAPIV3Schema '{shown}' is not supported"
        if isinstance(node.get("items"), list):
            return "OpenAPIV3Schema 'items' must be a structural schema, but is an array"
        if node.get(PRESERVE) is False:
            return f"internal error: '{PRESERVE}' must be true or undefined"
    return None


def nodes(schema: Schema) -> Iterator[Schema]:
    """Yield every schema inside a schema, itself first."""
    waiting: list[Schema] = [schema]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(list(_child_schemas(node)))


def _child_schemas(schema: Schema) -> Iterator[Schema]:
    for keyword in ("properties", "patternProperties", "definitions", "dependencies"):
        for item in (schema.get(keyword) or {}).values():
            if isinstance(item, Mapping):
                yield item
    for keyword in ("additionalProperties", "additionalItems", "items", "not"):
        item = schema.get(keyword)
        if isinstance(item, Mapping):
            yield item
    for keyword in ("items", "allOf", "oneOf", "anyOf"):
        items = schema.get(keyword)
        if isinstance(items, list):
            yield from items
