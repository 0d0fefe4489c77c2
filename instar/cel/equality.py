"""Equality and order. Numbers compare across types, a bool is never a number, sets and keyed
lists ignore order. ``freeze`` turns any value into a hashable one with the same equality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

from instar.cel.values import (
    CelError,
    Duration,
    ListValue,
    MapValue,
    NoSuchOverload,
    ObjectValue,
    OptionalValue,
    Timestamp,
    Uint,
    as_list,
    is_list,
    is_map,
)

_NUMBERS = (int, Uint, float)
_SIMPLE = frozenset((str, int, bool, bytes, float, Duration, Timestamp, Uint))


def equal(left: Any, right: Any) -> bool:
    kind, other = type(left), type(right)
    if kind is other and kind in _SIMPLE:
        return bool(left == right)
    if kind in _NUMBERS and other in _NUMBERS:
        return bool(left == right)
    if is_list(left) and is_list(right):
        return _equal_lists(left, right)
    if is_map(left) and is_map(right):
        return _equal_maps(left, right)
    if kind is ObjectValue and other is ObjectValue:
        return _equal_objects(left, right)
    if kind is not other:
        return False
    if kind is OptionalValue:
        return left.present is right.present and equal(left.content, right.content)
    return bool(left == right)


def _equal_lists(left: Any, right: Any) -> bool:
    ours, theirs = as_list(left), as_list(right)
    if len(ours) != len(theirs):
        return False
    kind = left.declared.list_type if type(left) is ListValue else "atomic"
    if kind == "set":
        return Counter(map(freeze, ours)) == Counter(map(freeze, theirs))
    if kind == "map":
        keyed = {item_key(left, item): item for item in theirs}
        return all(
            (key := item_key(left, item)) in keyed and equal(item, keyed[key]) for item in ours
        )
    return all(equal(a, b) for a, b in zip(ours, theirs, strict=True))


def item_key(of: ListValue, item: Any) -> Hashable:
    """What identifies an item of a keyed list."""
    if type(item) is not ObjectValue:
        return freeze(item)
    return tuple(_frozen_json(item.raw.get(name)) for name in of.declared.list_keys)


def _equal_maps(left: Any, right: Any) -> bool:
    ours, theirs = dict(left.items()), dict(right.items())
    return len(ours) == len(theirs) and all(
        key in theirs and equal(value, theirs[key]) for key, value in ours.items()
    )


def _equal_objects(left: ObjectValue, right: ObjectValue) -> bool:
    if left.raw is right.raw:
        return True
    return len(left.raw) == len(right.raw) and all(
        name in right.raw and equal(_member(left, name), _member(right, name)) for name in left.raw
    )


def _member(of: ObjectValue, name: str) -> Any:
    """A field by its JSON name; unknown fields take part in equality as plain JSON."""
    raw = of.raw[name]
    field = of.declared.by_name.get(name)
    return raw if raw is None or field is None else field.declared.convert(raw)


def freeze(value: Any) -> Hashable:
    kind = type(value)
    if kind is bool or kind is str or kind is bytes:
        return (kind, value)
    if kind in _NUMBERS:
        return ("number", value)
    if is_list(value):
        items = [freeze(item) for item in as_list(value)]
        unordered = kind is ListValue and value.declared.list_type in ("set", "map")
        return ("list", frozenset(Counter(items).items()) if unordered else tuple(items))
    if is_map(value):
        return ("map", frozenset((freeze(k), freeze(v)) for k, v in value.items()))
    if kind is ObjectValue:
        return ("map", frozenset((freeze(n), freeze(_member(value, n))) for n in value.raw))
    if kind is OptionalValue:
        return ("optional", value.present, freeze(value.content))
    return (kind, value)


def _frozen_json(raw: Any) -> Hashable:
    return freeze(raw)


def less(left: Any, right: Any) -> bool:
    kind, other = type(left), type(right)
    if (kind is other and kind in _SIMPLE) or (kind in _NUMBERS and other in _NUMBERS):
        return bool(left < right)
    raise NoSuchOverload


def contains(container: Any, value: Any) -> bool:
    """The ``in`` operator."""
    if type(container) is dict or type(container) is MapValue:
        keys = container.raw if isinstance(container, MapValue) else container
        if type(value) is bool:
            return any(key is value for key in keys)
        return value in keys
    if is_list(container):
        return any(equal(item, value) for item in container)
    if type(container) is ObjectValue and type(value) is str:
        return container.has(value)
    raise NoSuchOverload


def index(container: Any, key: Any) -> Any:
    """``container[key]``."""
    if is_list(container):
        if type(key) is float and key == int(key):
            key = int(key)
        if not isinstance(key, int) or type(key) is bool:
            raise NoSuchOverload
        items = container if type(container) is list else container.raw
        if not 0 <= key < len(items):
            raise CelError(f"index out of bounds: {key}")
        item = items[key]
        return item if type(container) is list else container.declared.convert_element(item)
    if type(container) is dict:
        if key in container:
            return container[key]
        raise CelError(f"no such key: {key}")
    if type(container) is MapValue:
        return container.get(key)
    if type(container) is ObjectValue and type(key) is str:
        return container.get(key)
    raise NoSuchOverload
