"""JSON values: the type aliases, deep copy, and the one place that compares and hashes them.

Used by every package for objects, which are plain dicts. Python's ``==`` treats ``True``, ``1`` and
``1.0`` as equal; kube-apiserver does not, so ``tests/layout/test_json_equality.py`` refuses ``==``,
``in``, sets and dict keys of JSON values elsewhere.

- ``same_json``: types count, as in Go's ``DeepEqual`` of decoded JSON. ``1`` is an int64, ``1.0`` a
  float64; ``0.0`` and ``-0.0`` are equal; an absent member is not null.
- ``same_json_numbers``: as ``same_json``, but ``1`` and ``1.0`` are equal, as server-side apply
  compares them.
- ``json_key``: a dict key or a member of a set, equal where ``same_json`` is true.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import orjson

Object = dict[str, Any]
"""A JSON object, decoded."""
Pointer = tuple[str | int, ...]
"""The path to a part of a JSON value: names of members and positions in lists."""


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value.

    Encodes and decodes, which is three times as fast as walking; a value that has no JSON text (a
    huge integer, half a surrogate pair) is walked.
    """
    if not isinstance(value, dict | list):
        return value
    try:
        return orjson.loads(orjson.dumps(value))
    except TypeError:
        return _copy_recursively(value)


def _copy_recursively(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy_recursively(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copy_recursively(item) for item in value]
    return value


def is_larger(value: Any, most: int) -> bool:
    """Return whether the JSON of a value has more than about ``most`` bytes. Stops counting there,
    because a value that contains one object many times is small in memory and may be huge as
    JSON."""
    left, waiting = most, [value]
    while waiting and left >= 0:
        item = waiting.pop()
        if isinstance(item, str):
            left -= len(item) + 2
        elif isinstance(item, dict):
            left -= 2 + sum(len(name) + 4 for name in item)
            waiting += item.values()
        elif isinstance(item, list):
            left -= 2 + len(item)
            if left >= 0:
                waiting += item
        else:
            left -= 4
    return left < 0


def same_json(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal, types included: 1, 1.0 and true differ.

    Python's ``==`` runs in C and is never false for equal values, so it comes first. Containers
    that it calls equal differ at most in their numbers, which their texts show at once.
    """
    if left is right:
        return True
    kind = left.__class__
    if kind is not right.__class__ or left != right:
        return False
    return (kind is not dict and kind is not list) or _same_text(left, right)


def _same_text(left: Any, right: Any) -> bool:
    try:
        if orjson.dumps(left) == orjson.dumps(right):
            return True
    except TypeError:
        pass  # a number that has no JSON text in orjson
    return _same_types(left, right)


def _same_types(left: Any, right: Any) -> bool:
    """Compare the types of two values that are equal by ``==``; their members may be in another
    order, and one zero may be negative."""
    if left is right:
        return True
    if isinstance(left, dict):
        return all(_same_types(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return all(map(_same_types, left, right))
    return left.__class__ is right.__class__


def same_json_numbers(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal where 1 and 1.0 count as one number and true does
    not."""
    if left is right:
        return True
    if left != right:
        return False
    if isinstance(left, dict):
        return all(same_json_numbers(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return all(map(same_json_numbers, left, right))
    return isinstance(left, bool) is isinstance(right, bool)


def is_among(value: Any, values: Iterable[Any]) -> bool:
    """Return whether some of ``values`` is the same JSON value: ``in``, with types."""
    return any(same_json(value, other) for other in values)


def json_key(value: Any) -> Hashable:
    """Return a hashable key: two values have equal keys exactly if ``same_json`` is true."""
    kind = value.__class__
    if kind is str or value is None:
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return (dict, frozenset((name, json_key(item)) for name, item in value.items()))
    if kind is list:
        return (list, tuple(map(json_key, value)))
    return (kind, value)


ABSENT: Any = object()
"""Stands for a value that only the other side of a comparison has."""


def differing(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the paths at which two values differ, in order, with both values.

    Uses a stack, because objects may be nested as deep as the server allows.
    """
    todo: list[tuple[str, Any, Any]] = [("", old, new)]
    while todo:
        path, old, new = todo.pop()
        if same_json(old, new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            names = sorted(old.keys() | new.keys(), reverse=True)
            todo += [
                (f"{path}.{name}".lstrip("."), old.get(name, ABSENT), new.get(name, ABSENT))
                for name in names
            ]
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            pairs = list(enumerate(zip(old, new, strict=True)))
            todo += [(f"{path}[{n}]", one, other) for n, (one, other) in reversed(pairs)]
        else:
            yield path, old, new
