"""Items of generated lists: leaves out those that a set or map list treats as duplicates.

Used by ``objects.py`` and ``tools/sdk/checking/directed_objects.py``; imports no hypothesis.
"""

from __future__ import annotations

from typing import Any

from instar.kube.schema.structure.structural import Structural


def without_duplicates(node: Structural, items: list[Any]) -> list[Any]:
    """Drop items that a set or map list would report as duplicates."""
    unique = any(raw.get("uniqueItems") for raw in (node.raw,))
    if node.list_type not in ("set", "map") and not unique:
        return items
    seen: list[Any] = []
    kept = []
    for item in items:
        identity = item
        if node.list_type == "map" and isinstance(item, dict):
            identity = [item.get(key) for key in node.list_map_keys]
        if identity not in seen:
            seen.append(identity)
            kept.append(item)
    return kept
