"""Makes the metadata that every object has explicit in schemas that leave it out.

A schema may restrict ``metadata.name`` and ``metadata.generateName``. The version it is compared
with often has no ``metadata`` at all, which means any metadata, not none. ``engine.py`` calls this
before it compares two CRDs, so that the first restriction is reported as a narrowed value and not
as a new field.
"""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.tools.reviewer.reviewed_crd import ReviewedCrd

_NAMES = ("name", "generateName")


def align_metadata(old: ReviewedCrd | None, new: ReviewedCrd) -> None:
    """Complete the normalised schemas of both sides, if one of them states metadata."""
    sides = [side for side in (old, new) if side is not None]
    schemas = [schema for side in sides for schema in side.schemas.values()]
    stated = [_metadata(schema) for schema in schemas]
    if not any(stated):
        return
    restricted = {
        name for node in stated for name in _NAMES if name in ((node or {}).get("properties") or {})
    }
    for schema in schemas:
        if schema.get("type") == "object":
            _complete(schema, sorted(restricted))


def _metadata(schema: Object) -> Object | None:
    found = (schema.get("properties") or {}).get("metadata")
    return found if isinstance(found, dict) else None


def _complete(schema: Object, names: list[str]) -> None:
    properties: dict[str, Any] = schema.setdefault("properties", {})
    metadata = properties.setdefault("metadata", {"type": "object"})
    if names:
        below = metadata.setdefault("properties", {})
        for name in names:
            below.setdefault(name, {"type": "string"})
