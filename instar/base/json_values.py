"""JSON values: the type aliases, deep copy and comparison.

Used by every package for objects, which are plain dicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

Object = dict[str, Any]
"""A JSON object, decoded."""
Pointer = tuple[str | int, ...]
"""A place in a JSON value: names and positions on the way to it."""


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
        return _walked(value)


def _walked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _walked(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_walked(item) for item in value]
    return value


ABSENT: Any = object()
"""Stands for a value that only the other side of a comparison has."""


def differing(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the paths at which two values differ, in order, with both values.

    Uses a stack, because objects may be nested as deep as the server allows.
    """
    todo: list[tuple[str, Any, Any]] = [("", old, new)]
    while todo:
        path, old, new = todo.pop()
        if type(old) is type(new) and old == new:
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
