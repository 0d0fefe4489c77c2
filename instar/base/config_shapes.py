"""A plain document against a shape: which of its fields nobody knows, what is of a wrong type.

For configuration files, whose readers say what is wrong in one line. A shape is a dict of fields,
a list with the shape of its items, a type, or None for anything.
"""

from __future__ import annotations

from typing import Any

from instar.base.field_errors import child, index

_NAMES = {str: "string", bool: "boolean", int: "number"}


class Misshapen(Exception):
    """``str()`` says where, and what was expected there."""


def unknown_fields(value: Any, shape: Any, path: str = "") -> list[str]:
    """The paths of fields the shape does not have. Raises ``Misshapen``; null is like absent."""
    if value is None or shape is None:
        return []
    if isinstance(shape, dict):
        return _of_object(value, shape, path)
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise Misshapen(f"{path}: a list was expected")
        found: list[str] = []
        for position, part in enumerate(value):
            found += unknown_fields(part, shape[0], index(path, position))
        return found
    if not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        raise Misshapen(f"{path}: a {_NAMES[shape]} was expected")
    return []


def _of_object(value: Any, shape: dict[str, Any], path: str) -> list[str]:
    if not isinstance(value, dict):
        raise Misshapen(f"{path}: an object was expected")
    found: list[str] = []
    for name, part in value.items():
        place = child(path, str(name))
        found += unknown_fields(part, shape[name], place) if name in shape else [place]
    return found
