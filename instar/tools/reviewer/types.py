"""JSON types that a schema node admits, and whether one set of types includes another.

Called by ``engine.py``, ``changes.py``, the rules about types and fields, and the search for
example objects (``witnesses/``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ANYTHING = frozenset({"string", "integer", "number", "boolean", "array", "object"})


def admitted_types(node: Mapping[str, Any]) -> frozenset[str]:
    """Return the types that a value may have; ``number`` includes ``integer``."""
    if node.get("x-kubernetes-int-or-string"):
        return frozenset({"integer", "string"})
    stated = node.get("type")
    if not stated:
        return ANYTHING
    return frozenset({"number", "integer"}) if stated == "number" else frozenset({str(stated)})


def compatible_types(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether some values of the old types are still valid, so that the rest is compared
    too.
    """
    return bool(admitted_types(old) & admitted_types(new))


def type_name(node: Mapping[str, Any]) -> str:
    if node.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    return str(node.get("type") or "any type")
