"""Comparison key of a schema's pruning behaviour.

Used by ``CompiledSchema.same_pruning``: versions with equal keys prune alike and drop the same
nulls, so an object can change between them without being parsed. Defaults are not part of the key,
because they are not applied after a conversion.
"""

from __future__ import annotations

from typing import Any

from instar.kube.schema.structure.structural import Structural

_META = frozenset({"apiVersion", "kind", "metadata"})


def skeleton(root: Structural) -> Any:
    """Return the key of a whole object's schema; its metadata is ignored."""
    return _skeleton(root, resource=True)


def _skeleton(node: Structural | None, *, resource: bool = False) -> Any:
    if node is None:
        return None
    resource = resource or node.embedded
    members = {
        name: _skeleton(item)
        for name, item in node.properties.items()
        if not (resource and name in _META)
    }
    additional = node.additional
    if isinstance(additional, Structural):
        other: Any = (_skeleton(additional),)
    else:
        other = additional is not None
    items = _skeleton(node.items)
    return (members, other, items, node.preserve_unknown, node.nullable, resource)
