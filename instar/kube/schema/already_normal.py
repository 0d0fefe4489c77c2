"""Fast check whether pruning, null dropping and coercion would leave a value unchanged.

Called through ``compiled.py`` before those three steps, because most objects need none of them. The
check may return False for a normal value (embedded resources, lists among preserved unknown
fields); then the steps run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.kube.schema.defaulting import drops_null
from instar.kube.schema.structure.interning import once_per_node
from instar.kube.schema.structure.structural import Structural

Tidy = Callable[[Any], bool]
"""Returns whether a list or object needs no change; it is not called for other values."""

_META = ("apiVersion", "kind", "metadata")


def compile_normal_check(root: Structural) -> Tidy:
    """Compile the check for whole objects. Their own metadata is not pruned, but nulls are
    dropped there."""
    known = {name: _node_check(item) for name, item in root.properties.items()}
    known |= {name: _meta(root.properties.get(name)) for name in _META}
    return _object(root, known, _additional_check(root))


def _meta(node: Structural | None) -> Tidy:
    if node is None or not (node.properties or node.items or node.additional):
        return _always_normal
    flat = not any(item.properties or item.items or item.additional for item in _child_nodes(node))
    return _has_no_nulls if flat else _never_normal


def _child_nodes(node: Structural) -> list[Structural]:
    others = (node.items, node.additional)
    return [*node.properties.values(), *(one for one in others if isinstance(one, Structural))]


@once_per_node
def _node_check(node: Structural) -> Tidy:
    known = {name: _node_check(item) for name, item in node.properties.items()}
    others = _additional_check(node)
    if node.embedded or (node.preserve_unknown and node.items is not None):
        return _never_normal
    if not known and node.additional is None and node.items is None:
        return _always_normal if node.preserve_unknown else _has_no_keys
    if node.type == "array":
        return _list(node)
    objects = _object(node, known, others)
    if node.type == "object":
        return objects
    lists = _list(node)
    return lambda value: (objects if value.__class__ is dict else lists)(value)


def _additional_check(node: Structural) -> Tidy | None:
    """Return the check of members without a property schema; None where unknown members are
    pruned."""
    if isinstance(node.additional, Structural):
        return _node_check(node.additional)
    if node.additional is not None:
        return _has_no_keys
    return _always_normal if node.preserve_unknown else None


def _object(node: Structural, known: dict[str, Tidy], others: Tidy | None) -> Tidy:
    find = known.get
    droppable = {name for name, item in node.properties.items() if drops_null(item)}
    drops_others = isinstance(node.additional, Structural) and drops_null(node.additional)

    def tidy(value: Any) -> bool:
        if value.__class__ is not dict:
            return not value
        for name, item in value.items():
            kind = item.__class__
            if kind is str and name in known:  # by far the most common case
                continue
            deeper = find(name, others)
            if deeper is None:
                return False
            if kind is dict or kind is list:
                if not deeper(item):
                    return False
            elif item is None and (name in droppable or (drops_others and name not in known)):
                return False
        return True

    return tidy


def _list(node: Structural) -> Tidy:
    each = _has_no_keys if node.items is None else _node_check(node.items)

    def tidy(value: Any) -> bool:
        if value.__class__ is not list:
            return not value
        for item in value:
            kind = item.__class__
            if (kind is dict or kind is list) and not each(item):
                return False
        return True

    return tidy


def _has_no_keys(value: Any) -> bool:
    """Return whether a value without a schema is already pruned: it has no keys."""
    if value.__class__ is dict:
        return not value
    return all(_has_no_keys(item) for item in value if item.__class__ in (dict, list))


def _has_no_nulls(value: Any) -> bool:
    return None not in (value.values() if value.__class__ is dict else value)


def _always_normal(value: Any) -> bool:
    return True


def _never_normal(value: Any) -> bool:
    return False
