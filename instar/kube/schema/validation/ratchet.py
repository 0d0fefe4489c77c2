"""Validation ratcheting: correlates parts of the new object with the old one and compares them.

Called by ``validate.py`` and the CEL rules; an error is dropped where a node equals its old value.
Old values are found by key in objects and by map keys in map lists; items of other lists, and
values without a schema, have no old value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.base.json_values import same_json
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.structure.structural import Structural

_SCALARS = (str, int, float, bool)


def child_partner(old: Any, name: str) -> Any:
    """Return the old value of a member; ABSENT where there is none."""
    return old.get(name, ABSENT) if type(old) is dict else ABSENT


def item_partners(node: Structural, new: list[Any], old: Any) -> list[Any]:
    """Return the old item for each new one, or ABSENT."""
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
    """Return the schema of a key; without one nothing below it has an old value."""
    schema = node.properties.get(name, node.additional)
    return schema if isinstance(schema, Structural) else None


def unchanged(node: Structural, new: Any, old: Any) -> bool:
    """Return whether two values are equal, as far as they can be correlated.

    An object that has keys without a schema (metadata, preserved unknown fields) counts as changed.
    The order of a map list does not matter.
    """
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
"""Returns whether a pruned value counts as unchanged when it is identical to its old value."""


def compile_comparable(node: Structural) -> Comparable | None:
    """Compile the test; None where it always holds.

    It does not hold where keys have no schema or the items of a map list have duplicate keys: such
    a value never counts as unchanged.
    """
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
        if keyed and not _has_distinct_keys(node, value):
            return False
        return each is None or all(map(each, value))

    return comparable


def _has_distinct_keys(node: Structural, items: list[Any]) -> bool:
    known = {_identity(node, item) for item in items}
    return len(known) == len(items) and None not in known


class Correlated:
    """A value and its old value, compared lazily and at most once."""

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
    """Return the typed values of the map keys; None when they cannot identify the item."""
    if type(item) is not dict:
        return None
    parts: list[Any] = []
    for name in node.list_map_keys:
        value = item.get(name)
        if type(value) not in _SCALARS:
            return None
        parts.append((value.__class__, value))
    return tuple(parts)
