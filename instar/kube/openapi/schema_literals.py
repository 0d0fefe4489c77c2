"""Helper functions for hand-written schemas; each returns a new JSON-ready dict.

Called by ``models.py`` and the ``builtin_*`` modules.
"""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object


def text(description: str = "", **more: Any) -> Object:
    return _node("string", description, more)


def integer(description: str = "", bits: int = 32, **more: Any) -> Object:
    return _node("integer", description, {"format": f"int{bits}", **more})


def boolean(description: str = "", **more: Any) -> Object:
    return _node("boolean", description, more)


def array(items: Object, description: str = "", **more: Any) -> Object:
    return _node("array", description, {"items": items, **more})


def texts(description: str = "", **more: Any) -> Object:
    return array({"type": "string"}, description, **more)


def mapping(values: Object, description: str = "", **more: Any) -> Object:
    return _node("object", description, {"additionalProperties": values, **more})


def obj(description: str, properties: Object, *required: str, **more: Any) -> Object:
    names: Object = {"required": list(required)} if required else {}
    return _node("object", description, {"properties": properties, **names, **more})


def anything(description: str = "", **more: Any) -> Object:
    """Return an object schema without described fields that preserves unknown fields."""
    return _node("object", description, {"x-kubernetes-preserve-unknown-fields": True, **more})


def list_by(*keys: str, merge: str = "") -> Object:
    """Return the merge keywords of a list of objects: its map keys, or one strategic merge key."""
    out: Object = {}
    if keys:
        out = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    if merge:
        out |= {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": merge}
    return out


def _node(kind: str, description: str, more: Object) -> Object:
    head: Object = {"description": description} if description else {}
    return {**head, "type": kind, **more}
