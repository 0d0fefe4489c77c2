"""Shape check for configuration files: finds unknown fields and wrong types.

Called by the readers of audit policies, admission and encryption configurations, rate limits and
kubeconfigs, which report each problem in one line. A shape is a dict of fields, a list with the
shape of its items, a type, or None for any value.
"""

from __future__ import annotations

from typing import Any

from instar.base.field_errors import child, index

_TYPE_NAMES = {str: "string", bool: "boolean", int: "number"}


class ShapeMismatch(Exception):
    """A value has the wrong type; ``str()`` is its path and the expected type."""


def unknown_fields(value: Any, shape: Any, path: str = "") -> list[str]:
    """Return the paths of fields that the shape does not have. Raises ``ShapeMismatch``; null
    counts as absent."""
    if value is None or shape is None:
        return []
    if isinstance(shape, dict):
        return _unknown_in_object(value, shape, path)
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise ShapeMismatch(f"{path}: a list was expected")
        found: list[str] = []
        for position, part in enumerate(value):
            found += unknown_fields(part, shape[0], index(path, position))
        return found
    if not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        raise ShapeMismatch(f"{path}: a {_TYPE_NAMES[shape]} was expected")
    return []


def _unknown_in_object(value: Any, shape: dict[str, Any], path: str) -> list[str]:
    if not isinstance(value, dict):
        raise ShapeMismatch(f"{path}: an object was expected")
    found: list[str] = []
    for name, part in value.items():
        place = child(path, str(name))
        found += unknown_fields(part, shape[name], place) if name in shape else [place]
    return found
