"""CEL equality, ordering, ``in`` and indexing of values.

Called by operators, list functions and field access. Numbers compare across types, a bool is never
a number, sets and keyed lists ignore order. ``freeze`` makes any value hashable with the same
equality.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

from instar.kube.cel.go_text import show_key
from instar.kube.cel.values import (
    MISSING,
    CelError,
    Duration,
    ListValue,
    MapValue,
    MessageFields,
    NoSuchOverload,
    ObjectValue,
    Opaque,
    OptionalValue,
    StructValue,
    Timestamp,
    Uint,
    as_list,
    is_list,
    is_map,
    type_name,
)

_NUMBERS = (int, Uint, float)
_SIMPLE = frozenset((str, int, bool, bytes, float, Duration, Timestamp, Uint))
_RAW = frozenset((str, int, bool, float))


def equal(left: Any, right: Any) -> bool:
    kind, other = type(left), type(right)
    if kind is other and kind in _SIMPLE:
        return bool(left == right)
    if kind in _NUMBERS and other in _NUMBERS:
        return _same_kind(left, right)
    if is_list(left) and is_list(right):
        return _equal_lists(left, right)
    if is_map(left) and is_map(right):
        return _equal_maps(left, right)
    if kind is ObjectValue and other is ObjectValue:
        return _equal_objects(left, right)
    if isinstance(left, Opaque):
        return other is not type(None) and left.cel_equals(right)
    if kind is not other:
        return False
    if kind is OptionalValue:
        return left.present is right.present and equal(left.content, right.content)
    if kind is StructValue:
        return left.cel_type == right.cel_type and _equal_maps(left.fields, right.fields)
    return bool(left == right)


def _same_kind(left: Any, right: Any) -> bool:
    """Compare numbers and scalars; an integer and a double are compared as doubles, with
    rounding."""
    if type(left) is float or type(right) is float:
        return float(left) == float(right)
    return bool(left == right)


def _equal_lists(left: Any, right: Any) -> bool:
    if _length(left) != _length(right):
        return False
    kind = left.declared.list_type if type(left) is ListValue else "atomic"
    if kind == "set":
        held = {(raw.__class__, raw) for raw in left.raw if raw.__class__ in _RAW}
        return all((item.__class__, item) in held for item in right if _hashable(item))
    ours, theirs = as_list(left), as_list(right)
    if kind == "map":
        keyed = {item_key(left, item): item for item in ours}
        return all(
            (key := item_key(left, item)) in keyed and equal(keyed[key], item) for item in theirs
        )
    return all(map(equal, ours, theirs))


def _length(value: Any) -> int:
    return len(value.raw if type(value) is ListValue else value)


def _hashable(item: Any) -> bool:
    return not (is_list(item) or is_map(item) or type(item) is ObjectValue)


def item_key(of: ListValue, item: Any) -> Hashable:
    """Return the identity of an item of a keyed list."""
    if type(item) is not ObjectValue:
        return freeze(item)
    return tuple(freeze(item.raw.get(name)) for name in of.declared.list_keys)


def _equal_maps(left: Any, right: Any) -> bool:
    ours, theirs = dict(left.items()), dict(right.items())
    if len(ours) != len(theirs):
        return False
    for key, value in ours.items():
        if key not in theirs or not equal(value, theirs[key]):
            return False
    return True


def _equal_objects(left: ObjectValue, right: ObjectValue) -> bool:
    if left.raw is right.raw:
        return True
    return len(left.raw) == len(right.raw) and all(
        _equal_members(left, right, name, raw) for name, raw in left.raw.items()
    )


def _equal_members(left: ObjectValue, right: ObjectValue, name: str, raw: Any) -> bool:
    """Compare a field by its JSON name. Unknown fields are compared as plain JSON if both have
    them."""
    other = right.raw.get(name, MISSING)
    field = left.declared.by_name.get(name)
    if field is None:
        return other is MISSING or freeze(raw) == freeze(other)
    if raw is None or other is None or other is MISSING:
        return raw is None and (other is None or other is MISSING)
    return equal(field.declared.convert(raw), field.declared.convert(other))


def freeze(value: Any) -> Hashable:
    """Return a hashable value that is equal exactly when the CEL values are."""
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
        return (
            "map",
            frozenset((n, _frozen_member(value, n, raw)) for n, raw in value.raw.items()),
        )
    if kind is OptionalValue:
        return ("optional", value.present, freeze(value.content))
    if kind is StructValue:
        return (value.cel_type, freeze(value.fields))
    return (kind, value)


def _frozen_member(of: ObjectValue, name: str, raw: Any) -> Hashable:
    field = of.declared.by_name.get(name)
    return freeze(raw if raw is None or field is None else field.declared.convert(raw))


def less(left: Any, right: Any) -> bool:
    kind, other = type(left), type(right)
    if (kind is other and kind in _SIMPLE) or (kind in _NUMBERS and other in _NUMBERS):
        if kind is float or other is float:
            left, right = float(left), float(right)
            if left != left or right != right:
                raise CelError("NaN values cannot be ordered")
        return bool(left < right)
    raise TypeError


def contains(container: Any, value: Any) -> bool:
    """Evaluate the ``in`` operator."""
    if type(container) is dict:
        return lookup(container, value) is not MISSING
    if type(container) is MapValue or type(container) is ObjectValue:
        return container.find(value) is not MISSING
    if is_list(container):
        return any(equal(item, value) for item in container)
    raise NoSuchOverload


def lookup(held: dict[Any, Any], key: Any) -> Any:
    """Look up a key of a map that an expression built. In Python ``True`` equals 1; in CEL it
    does not."""
    try:
        found = held.get(key, MISSING)
    except TypeError:
        return MISSING
    if found is not MISSING and (key.__class__ is bool or key in (0, 1)):
        same = (name for name in held if name == key)
        if (next(same).__class__ is bool) is not (key.__class__ is bool):
            return MISSING
    return found


def find(container: Any, key: Any) -> Any:
    """Return ``container[key]`` or MISSING. Raises for a key type that the container cannot
    have."""
    kind = type(container)
    if kind is ListValue or kind is list:
        items = container if kind is list else container.raw
        at = key if type(key) is int else _position(key)
        if not 0 <= at < len(items):
            return MISSING
        return items[at] if kind is list else container.declared.convert_element(items[at])
    if kind is dict:
        return lookup(container, key)
    if kind is MapValue or kind is ObjectValue or isinstance(container, MessageFields):
        return container.find(key)
    return MISSING


def _position(key: Any) -> int:
    if type(key) is Uint:
        return int(key)
    if type(key) is float:
        if key.is_integer():
            return int(key)
        raise CelError(f"unsupported index value {show_key(key)} in list")
    raise CelError(f"unsupported index type '{type_name(key)}' in list")


def index(container: Any, key: Any) -> Any:
    """Return ``container[key]``, which must exist."""
    found = find(container, key)
    if found is MISSING:
        raise not_there(container, key)
    return found


def not_there(container: Any, key: Any) -> CelError:
    if is_list(container):
        return CelError(f"index out of bounds: {show_key(key)}")
    return CelError(f"no such key: {show_key(key)}")
