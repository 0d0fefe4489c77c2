"""Which part of the old object a part of the new one continues, and whether it changed.

An error is forgiven where a node equals its old partner. Partners are found by key in objects
and by the map keys in map lists; items of other lists have none, nor has anything without a schema
of its own. Nothing here validates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.kube.schema.json_types import ABSENT, same_json
from instar.kube.schema.structure.structural import Structural

_SCALARS = (str, int, float, bool)


def child_partner(old: Any, name: str) -> Any:
    return old.get(name, ABSENT) if type(old) is dict else ABSENT


def item_partners(node: Structural, new: list[Any], old: Any) -> list[Any]:
    """For each new item its old one, or ABSENT."""
    if node.list_type != "map" or type(old) is not list or not node.list_map_keys:
        return [ABSENT] * len(new)
    known: dict[tuple[Any, ...], Any] = {}
    for item in old:
        identity = _identity(node, item)
        if identity is not None:
            known.setdefault(identity, item)
    partners = []
    for item in new:
        identity = _identity(node, item)
        partners.append(ABSENT if identity is None else known.get(identity, ABSENT))
    return partners


def member_schema(node: Structural, name: str) -> Structural | None:
    """The schema of a key; without one, nothing below it has a partner."""
    schema = node.properties.get(name, node.additional)
    return schema if isinstance(schema, Structural) else None


def unchanged(node: Structural, new: Any, old: Any) -> bool:
    """Equal values, as far as partners can be told: where a key has no schema, as in metadata or
    where unknown fields are kept, an object counts as changed. The order of a map list does not
    count."""
    if new.__class__ is not old.__class__:
        return False
    if type(new) is dict:
        return len(new) == len(old) and all(
            name in old
            and (schema := member_schema(node, name)) is not None
            and unchanged(schema, item, old[name])
            for name, item in new.items()
        )
    if type(new) is not list:
        return bool(new == old)
    if len(new) != len(old) or node.list_type != "map":
        return same_json(new, old)
    items = node.items
    return items is not None and all(
        partner is not ABSENT and partner is not None and unchanged(items, item, partner)
        for item, partner in zip(new, item_partners(node, new, old), strict=True)
    )


Comparable = Callable[[Any], bool]
"""Whether a pruned value is unchanged when it is the very same as before."""


def compile_comparable(node: Structural) -> Comparable | None:
    """None where it always is. Not so where keys have no schema, and where the items of a map
    list cannot be told apart: a value like that never counts as unchanged."""
    if node.preserve_unknown or node.embedded or node.additional is True:
        return lambda _value: False
    members = {name: compile_comparable(item) for name, item in node.properties.items()}
    doubtful = {name: check for name, check in members.items() if check is not None}
    inner = node.items if node.items is not None else node.additional
    each = compile_comparable(inner) if isinstance(inner, Structural) else None
    keyed = node.list_type == "map"
    if not (doubtful or each or keyed):
        return None

    def comparable(value: Any) -> bool:
        if type(value) is dict:
            if each is not None and not all(map(each, value.values())):
                return False
            return all(check(value[name]) for name, check in doubtful.items() if name in value)
        if type(value) is not list:
            return True
        if keyed and not _told_apart(node, value):
            return False
        return each is None or all(map(each, value))

    return comparable


def _told_apart(node: Structural, items: list[Any]) -> bool:
    known = {_identity(node, item) for item in items}
    return len(known) == len(items) and None not in known


class Correlated:
    """A value and its old partner, compared at most once, and only when somebody asks."""

    __slots__ = ("_new", "_old", "_partners", "_same", "_schema")

    def __init__(self, schema: Structural, new: Any, old: Any) -> None:
        self._schema, self._new, self._old = schema, new, old
        self._same: bool | None = None
        self._partners: list[Any] | None = None

    def unchanged(self) -> bool:
        if self._same is None:
            self._same = unchanged(self._schema, self._new, self._old)
        return self._same

    def key(self, name: str) -> Correlated | None:
        schema, partner = member_schema(self._schema, name), child_partner(self._old, name)
        if schema is None or partner is ABSENT:
            return None
        return Correlated(schema, self._new[name], partner)

    def index(self, position: int) -> Correlated | None:
        items = self._schema.items
        if self._partners is None:
            self._partners = item_partners(self._schema, self._new, self._old)
        partner = self._partners[position]
        if items is None or partner is ABSENT or partner is None:
            return None
        return Correlated(items, self._new[position], partner)


def _identity(node: Structural, item: Any) -> tuple[Any, ...] | None:
    """The values of the map keys, with their types; None when they cannot identify the item."""
    if type(item) is not dict:
        return None
    parts: list[Any] = []
    for name in node.list_map_keys:
        value = item.get(name)
        if type(value) not in _SCALARS:
            return None
        parts.append((value.__class__, value))
    return tuple(parts)
