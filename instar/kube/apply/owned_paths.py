"""Converts objects to field sets: paths that an apply claims (``owned``) or a new value adds
(``paths_of_new_value``).

Called by apply and ownership tracking. The two differ in inner nodes: an applier claims leaves and
items, a writer also every map and list it created. Values that do not fit the schema are treated as
untyped, because a live object may be older than its schema.
"""

from __future__ import annotations

from typing import Any

from instar.kube.apply.field_set import LEAF, SELF, FieldSet
from instar.kube.apply.ownership_schema import (
    DEDUCED,
    Atom,
    BadItem,
    ListType,
    MapType,
    TypedSchema,
    item_element,
)

DEDUCED_MAP = MapType(False, {}, DEDUCED)

UNTRACKED = frozenset(
    (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
"""Metadata fields without an owner."""

NEVER_OWNED: FieldSet = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {SELF: LEAF, **{f"f:{name}": LEAF for name in sorted(UNTRACKED)}},
}
"""Paths that are removed from a manager's set before it is recorded."""


def present_in_object(
    schema: TypedSchema, obj: dict[str, Any], skip: frozenset[str] = frozenset()
) -> FieldSet:
    """Return all paths of a new object, without unowned metadata and the top-level ``skip``.

    On the hot path of every create, so unowned paths are left out during the walk.
    """
    root = schema.root.map or DEDUCED_MAP
    out: FieldSet = {}
    for name, value in obj.items():
        if name in ("apiVersion", "kind") or name in skip:
            continue
        element, atom = root.fields.get(name) or (f"f:{name}", root.element or DEDUCED)
        if name != "metadata" or type(value) is not dict:
            out[element] = paths_of_new_value(atom, value)
            continue
        fields = _present_map(atom.map or DEDUCED_MAP, value, UNTRACKED)
        if len(fields) > 1:
            del fields[SELF]
            out[element] = fields
    return out


def paths_of_new_value(atom: Atom, value: Any) -> FieldSet:
    """Return the node of a new value: itself and all below it are members."""
    if type(value) is dict:
        return _present_map(atom.map or DEDUCED_MAP, value)
    if type(value) is list:
        kind = atom.list
        if kind is not None and value and kind.relation != "atomic":
            return _present_items(kind, value)
    return LEAF


_NONE: frozenset[str] = frozenset()


def _present_map(kind: MapType, value: dict[str, Any], unseen: frozenset[str] = _NONE) -> FieldSet:
    if kind.atomic or not value:
        return LEAF
    out: FieldSet = {SELF: LEAF}
    fields = kind.fields
    other = kind.element or DEDUCED
    for name, child in value.items():
        if name in unseen:
            continue
        if name in fields:
            key, atom = fields[name]
        else:
            key, atom = "f:" + name, other
        if child.__class__ is dict:
            out[key] = _present_map(atom.map or DEDUCED_MAP, child)
        else:
            out[key] = paths_of_new_value(atom, child) if child.__class__ is list else LEAF
    return out


def _present_items(kind: ListType, items: list[Any]) -> FieldSet:
    out: FieldSet = {SELF: LEAF}
    for element, copies in index_by_element(kind, items).items():
        out[element] = paths_of_new_value(kind.element, copies[0]) if len(copies) == 1 else LEAF
    return out


def index_by_element(kind: ListType, items: list[Any]) -> dict[str, list[Any]]:
    """Return items by their element, in order; several per element are duplicates in the live
    object.

    Items without an identity are left out, because they cannot be owned.
    """
    out: dict[str, list[Any]] = {}
    for item in items:
        try:
            element = item_element(kind, item)
        except BadItem:
            continue
        out.setdefault(element, []).append(item)
    return out


def owned_in_object(schema: TypedSchema, obj: dict[str, Any]) -> FieldSet:
    """Return what a manager that applies ``obj`` claims, unowned metadata included.

    An empty list claims nothing; null and an empty map do.
    """
    return _owned_map(schema.root.map or DEDUCED_MAP, obj) or {}


def _owned(atom: Atom, value: Any) -> FieldSet | None:
    """Return the node of an applied value; None when neither it nor anything below is claimed."""
    if isinstance(value, dict):
        kind = atom.map or DEDUCED_MAP
        return LEAF if kind.atomic else _owned_map(kind, value)
    if isinstance(value, list):
        items = atom.list
        if items is None or items.relation == "atomic":
            return LEAF
        return _owned_items(items, value)
    return LEAF


def _owned_map(kind: MapType, value: dict[str, Any]) -> FieldSet | None:
    out: FieldSet = {}
    for name, child in value.items():
        key, atom = kind.fields.get(name) or (f"f:{name}", kind.element or DEDUCED)
        node = _owned(atom, child)
        if child is None or child == {}:
            node = LEAF
        elif name not in kind.fields:
            node = as_member(node)
        if node is not None:
            out[key] = node
    return out or None


def _owned_items(kind: ListType, items: list[Any]) -> FieldSet | None:
    return {
        element: as_member(_owned(kind.element, copies[0])) if len(copies) == 1 else LEAF
        for element, copies in index_by_element(kind, items).items()
    } or None


def as_member(node: FieldSet | None) -> FieldSet:
    """Return the same node as a member too."""
    if not node:
        return LEAF
    return node if SELF in node else {SELF: LEAF, **node}
