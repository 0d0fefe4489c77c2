"""Compares two objects of one version: returns added, modified and removed field paths.

Called by apply and by ownership tracking (``managers.py``). Equal subtrees are skipped, so a small
change to a large object is cheap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from instar.base.json_values import same_json_numbers
from instar.kube.apply.field_set import LEAF, FieldSet, union
from instar.kube.apply.owned_paths import (
    DEDUCED_MAP,
    UNTRACKED,
    index_by_element,
    paths_of_new_value,
)
from instar.kube.apply.ownership_schema import (
    DEDUCED,
    OBJECT_META,
    Atom,
    ListType,
    MapType,
    TypedSchema,
)
from instar.kube.schema.json_types import ABSENT


class Comparison(NamedTuple):
    """Sets of added, modified and removed paths, disjoint. All empty: the objects are equal."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    def touched(self) -> FieldSet:
        """Return the added and modified paths, which the writer becomes the owner of."""
        return union(self.modified, self.added)

    def empty(self) -> bool:
        return not (self.added or self.modified or self.removed)


def compare(
    schema: TypedSchema,
    old: dict[str, Any],
    new: dict[str, Any],
    skip: frozenset[str] = frozenset(),
) -> Comparison:
    """Compare ``old`` with ``new``, without the top-level fields ``skip`` and unowned metadata."""
    out = Comparison({}, {}, {})
    _compare_map(schema.root.map or DEDUCED_MAP, old, new, out, _UNSEEN | skip)
    return out


_UNSEEN = frozenset(("apiVersion", "kind"))
_NOTHING: frozenset[str] = frozenset()


def _compare_map(
    kind: MapType,
    old: dict[str, Any],
    new: dict[str, Any],
    out: Comparison,
    unseen: frozenset[str] = _NOTHING,
) -> None:
    fields, other = kind.fields, kind.element or DEDUCED
    for name, value in new.items():
        was = old.get(name, ABSENT)
        if was is value or name in unseen:
            continue
        known = fields.get(name)
        key, atom = ("f:" + name, other) if known is None else known
        if was is ABSENT:
            out.added[key] = paths_of_new_value(atom, value)
        elif was == value and (not atom.loose or same_json_numbers(was, value)):
            continue
        elif atom is OBJECT_META and unseen:
            _record_changes(key, _compare_metadata(atom, was, value), out)
        elif was.__class__ not in _CONTAINERS and value.__class__ not in _CONTAINERS:
            out.modified[key] = LEAF
        else:
            _compare_at(key, atom, was, value, out)
    if old.keys() <= new.keys():
        return
    for name, value in old.items():
        if name not in new and name not in unseen:
            known = fields.get(name)
            key, atom = ("f:" + name, other) if known is None else known
            out.removed[key] = paths_of_new_value(atom, value)


def _compare_metadata(atom: Atom, old: Any, new: Any) -> Comparison:
    """Compare the object's own metadata, without fields that have no owner."""
    below = Comparison({}, {}, {})
    _compare_map(atom.map or DEDUCED_MAP, old or {}, new or {}, below, UNTRACKED)
    return below


def _record_changes(key: str, found: Comparison, out: Comparison) -> None:
    if found.added:
        out.added[key] = found.added
    if found.modified:
        out.modified[key] = found.modified
    if found.removed:
        out.removed[key] = found.removed


def _compare_at(key: str, atom: Atom, old: Any, new: Any, out: Comparison) -> None:
    """Compare two different values and record the result under ``key``."""
    below = Comparison({}, {}, {})
    if _compare_value(atom, old, new, below):
        out.modified[key] = LEAF
    _record_changes(key, below, out)


def _compare_value(atom: Atom, old: Any, new: Any, below: Comparison) -> bool:
    """Return True when the value itself changed; changes inside it go to ``below``.

    Where several types are allowed, each side is treated as its own type; null as the first one.
    """
    if old.__class__ is dict and new.__class__ is dict:
        return _compare_maps(atom, old, new, below)
    if not isinstance(old, _CONTAINERS) and not isinstance(new, _CONTAINERS):
        return True
    sides = (_shape(atom, old), _shape(atom, new))
    changed = None in sides
    if dict in sides:
        changed |= _compare_maps(atom, _or_empty(dict, old), _or_empty(dict, new), below)
    if list in sides and atom.list is not None:
        before, after = _or_empty(list, old), _or_empty(list, new)
        if atom.list.relation == "atomic" or not (before or after):
            changed = True
        else:
            _compare_items(atom.list, before, after, below)
    return changed


def _compare_maps(atom: Atom, old: dict[str, Any], new: dict[str, Any], below: Comparison) -> bool:
    kind = atom.map or DEDUCED_MAP
    if kind.atomic or not (old or new):
        return True
    _compare_map(kind, old, new, below)
    return False


_CONTAINERS = (dict, list)


def _shape(atom: Atom, value: Any) -> type | None:
    """Return dict or list if the value is compared as one; None for a value without parts."""
    if value is None:
        if atom.map is not None:
            return dict
        return list if atom.scalar is None and atom.list is not None else None
    if isinstance(value, dict):
        return dict
    return list if isinstance(value, list) and atom.list is not None else None


def _or_empty(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else kind()


def _compare_items(kind: ListType, old: list[Any], new: list[Any], out: Comparison) -> None:
    """Compare items by their key. A key that several items have is one value, which can only be
    replaced."""
    before, after = index_by_element(kind, old), index_by_element(kind, new)
    for element, now in after.items():
        was = before.get(element, [])
        if len(now) > 1 and len(was) > 1:
            if not same_json_numbers(was, now):
                out.modified[element] = LEAF
        elif len(now) > 1:
            if was:
                out.removed[element] = paths_of_new_value(kind.element, was[0])
            out.added[element] = LEAF
        elif len(was) == 1:
            if not same_json_numbers(was[0], now[0]):
                _compare_at(element, kind.element, was[0], now[0], out)
        else:
            if was:
                out.removed[element] = LEAF
            out.added[element] = paths_of_new_value(kind.element, now[0])
    for element, was in before.items():
        if element not in after:
            out.removed[element] = (
                paths_of_new_value(kind.element, was[0]) if len(was) == 1 else LEAF
            )
