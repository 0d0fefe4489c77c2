"""Removes field paths from objects, and adapts recorded field sets to the current schema.

Called by ``pruning.py`` and ``managers.py``.
"""

from __future__ import annotations

from typing import Any

from instar.kube.apply.field_set import LEAF, SELF, FieldSet, is_member
from instar.kube.apply.owned_paths import DEDUCED_MAP, as_member
from instar.kube.apply.ownership_schema import (
    DEDUCED,
    Atom,
    BadItem,
    ListType,
    MapType,
    TypedSchema,
    item_element,
)


def remove_paths(schema: TypedSchema, obj: dict[str, Any], paths: FieldSet) -> dict[str, Any]:
    """Return a copy of ``obj`` without ``paths``. A container that loses its last item becomes
    null."""
    return _without_fields(schema.root.map or DEDUCED_MAP, obj, paths)


def _without(atom: Atom, value: Any, paths: FieldSet) -> Any:
    """Return a value without the paths; an atomic value is removed as a whole."""
    if isinstance(value, dict):
        kind = atom.map or DEDUCED_MAP
        return None if kind.atomic else _without_fields(kind, value, paths) or None
    if isinstance(value, list):
        items = atom.list
        if items is None or items.relation == "atomic":
            return None
        return _without_items(items, value, paths) or None
    return value


def _without_fields(kind: MapType, value: dict[str, Any], paths: FieldSet) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, child in value.items():
        key, atom = kind.fields.get(name) or (f"f:{name}", kind.element or DEDUCED)
        node = paths.get(key)
        if node is None:
            out[name] = child
        elif not is_member(node):
            out[name] = _without(atom, child, node)
    return out


def _without_items(kind: ListType, items: list[Any], paths: FieldSet) -> list[Any]:
    out: list[Any] = []
    for item in items:
        try:
            node = paths.get(item_element(kind, item))
        except BadItem:
            node = None
        if node is None:
            out.append(item)
        elif not is_member(node):
            out.append(_without(kind.element, item, node))
    return out


def with_named_parents(atom: Atom, fields: FieldSet) -> FieldSet:
    """Return the set with every declared parent field of a member as a member.

    A struct must be removable once no manager owns anything in it.
    """
    kind = atom.map
    out: FieldSet = {}
    for key, node in fields.items():
        if key == SELF or not node:
            out[key] = node
            continue
        below = with_named_parents(_child(atom, key), node)
        declared = kind is not None and key[:2] == "f:" and key[2:] in kind.fields
        out[key] = as_member(below) if declared else below
    return out


def collapse_atomic_fields(atom: Atom, fields: FieldSet) -> FieldSet:
    """Return the set after fields became atomic: paths below them collapse into the field.

    Returns ``fields`` itself when nothing changes.
    """
    changed: FieldSet = {}
    for key, node in fields.items():
        if not node:
            continue
        child = _child(atom, key)
        kept = LEAF if _is_one_value(child, node) else collapse_atomic_fields(child, node)
        if kept is not node:
            changed[key] = kept
    return {**fields, **changed} if changed else fields


def _is_one_value(atom: Atom, node: FieldSet) -> bool:
    if atom.map is not None:
        return atom.map.atomic and any(key != SELF for key in node)
    return atom.scalar is None and atom.list is not None and atom.list.relation == "atomic"


def _child(atom: Atom, key: str) -> Atom:
    if key[:2] == "f:":
        kind = atom.map or DEDUCED_MAP
        known = kind.fields.get(key[2:])
        return known[1] if known is not None else kind.element or DEDUCED
    return DEDUCED if atom.list is None else atom.list.element
