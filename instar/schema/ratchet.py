"""Which part of the old object a part of the new one continues, and whether it changed.

An error is forgiven where a node equals its old partner. Partners are found by key in objects
and by the map keys in map lists; items of other lists have none. Nothing here validates.
"""

from __future__ import annotations

from typing import Any

from instar.schema.structural import Structural
from instar.schema.values import ABSENT, same_json

_SCALARS = (str, int, float, bool)


def child_partner(old: Any, name: str) -> Any:
    return old.get(name, ABSENT) if type(old) is dict else ABSENT


def item_partners(node: Structural, new: list[Any], old: Any) -> list[Any]:
    """For each new item its old one, or ABSENT."""
    if node.list_type != "map" or type(old) is not list:
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


def unchanged(node: Structural, new: Any, old: Any) -> bool:
    """Equal values; the order of a map list does not count."""
    if new.__class__ is not old.__class__:
        return False
    if type(new) is dict:
        return len(new) == len(old) and all(
            name in old and _member_unchanged(node, name, item, old[name])
            for name, item in new.items()
        )
    if type(new) is list:
        if len(new) != len(old):
            return False
        items = node.items
        # Literally equal lists are unchanged even where items lack the keys to be paired by.
        literally = same_json(new, old)
        if literally or items is None:
            return literally
        partners = item_partners(node, new, old) if node.list_type == "map" else old
        return all(
            partner is not ABSENT and unchanged(items, item, partner)
            for item, partner in zip(new, partners, strict=True)
        )
    return bool(new == old)


def _member_unchanged(node: Structural, name: str, new: Any, old: Any) -> bool:
    schema = node.properties.get(name, node.additional)
    if isinstance(schema, Structural):
        return unchanged(schema, new, old)
    return same_json(new, old)


def _identity(node: Structural, item: Any) -> tuple[Any, ...] | None:
    """The values of the map keys, with their types; None when they cannot identify the item."""
    if type(item) is not dict:
        return None
    parts: list[Any] = []
    for name in node.list_map_keys:
        value = item.get(name, ABSENT)
        if value is ABSENT:
            fallback = node.items.properties.get(name) if node.items is not None else None
            value = ABSENT if fallback is None or fallback.default is None else fallback.default
        if type(value) not in _SCALARS:
            return None
        parts.append((value.__class__, value))
    return tuple(parts)
