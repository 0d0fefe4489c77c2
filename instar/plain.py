"""Plain JSON values: what every room calls an object, and the one way to copy one.

Knows nothing but Python's own types; every other room may import it.
"""

from __future__ import annotations

from typing import Any

import orjson

Object = dict[str, Any]
"""A JSON object, decoded."""
Pointer = tuple[str | int, ...]
"""A place in a JSON value: names and positions on the way to it."""


def copy_json(value: Any) -> Any:
    """A deep copy of a JSON value. Through text and back, which is three times as fast as walking;
    what has no text (a huge integer, half a surrogate pair) is walked."""
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
