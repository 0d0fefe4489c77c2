"""Pruning: removes fields that the schema does not specify, in place.

Called through ``compiled.py``. Each schema node is compiled into a closure that returns the removed
paths relative to its value, or None if nothing was removed, so the common case builds no path.
Metadata is left to ``metadata/object_meta.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from instar.kube.schema.structure.interning import once_per_node
from instar.kube.schema.structure.structural import Structural

Pruner = Callable[[Any], list[str] | None]
"""Prunes in place and returns the removed paths, each starting with ``.`` or ``[``."""

_META = frozenset({"apiVersion", "kind", "metadata"})
_NO_META: frozenset[str] = frozenset()


def compile_pruner(root: Structural) -> Pruner:
    """Compile a pruner for whole objects: the root keeps apiVersion, kind and metadata."""
    return compile_node(replace(root, embedded=True))


def dropped_paths(dropped: list[str] | None) -> list[str]:
    """Return a pruner's result as upstream reports it: no leading dot, sorted as text."""
    return sorted(path.removeprefix(".") for path in dropped) if dropped else []


def compile_node(node: Structural | None) -> Pruner:
    """Compile a pruner for a value at ``node``; without a schema all keys of objects are
    removed."""
    return empty if node is None else _pruner(node)


@once_per_node
def _pruner(node: Structural) -> Pruner:
    if node.preserve_unknown:
        return _preserving(node)
    meta = _META if node.embedded else _NO_META
    known = {name: compile_node(item) for name, item in node.properties.items() if name not in meta}
    return _closure(known, _additional(node), compile_node(node.items), meta, keep_unknown=False)


def empty(value: Any) -> list[str] | None:
    """Prune without a schema: objects lose all keys, lists keep their length."""
    if type(value) is dict:
        dropped = [f".{name}" for name in value]
        value.clear()
        return dropped or None
    if type(value) is list:
        return _each(value, empty)
    return None


def keep(value: Any) -> list[str] | None:
    """Prune nothing."""
    return None


def _preserving(node: Structural | None) -> Pruner:
    if node is None:
        return keep
    meta = _META if node.embedded else _NO_META
    known = {name: compile_node(item) for name, item in node.properties.items() if name not in meta}
    additional, items = _additional(node), _preserving(node.items)
    if not known and additional is None and items is keep:
        return keep
    return _closure(known, additional, items, meta, keep_unknown=True)


def _additional(node: Structural) -> Pruner | None:
    """Return the pruner of ``additionalProperties``; a bare bool keeps the key but empties its
    value."""
    if node.additional is None:
        return None
    return compile_node(node.additional if isinstance(node.additional, Structural) else None)


def _closure(
    known: dict[str, Pruner],
    additional: Pruner | None,
    items: Pruner,
    meta: frozenset[str],
    *,
    keep_unknown: bool,
) -> Pruner:
    find = known.get

    def prune(value: Any) -> list[str] | None:
        if type(value) is list:
            return _each(value, items)
        if type(value) is not dict:
            return None
        dropped: list[str] = []
        unknown: list[str] = []
        for name, item in value.items():
            deeper = find(name, additional)
            if name in meta:
                continue
            if deeper is None:
                if not keep_unknown:
                    unknown.append(name)
            elif type(item) is dict or type(item) is list:
                below = deeper(item)
                if below is not None:
                    dropped.extend(f".{name}{path}" for path in below)
        for name in unknown:
            del value[name]
            dropped.append(f".{name}")
        return dropped or None

    return prune


def _each(values: list[Any], items: Pruner) -> list[str] | None:
    dropped: list[str] = []
    for position, item in enumerate(values):
        if type(item) is dict or type(item) is list:
            below = items(item)
            if below is not None:
                dropped.extend(f"[{position}]{path}" for path in below)
    return dropped or None
