"""JSON value helpers of the schema modules: the ABSENT marker, typed equality and key order.

Called by validation, pipeline, apply and the reviewer.
"""

from __future__ import annotations

from typing import Any


class _Absent:
    """Marker for a missing value, as opposed to null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


def same_json(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal including types: 1, 1.0 and true differ."""
    if left.__class__ is not right.__class__:
        return False
    if type(left) is dict:
        if len(left) != len(right):
            return False
        return all(name in right and same_json(item, right[name]) for name, item in left.items())
    if type(left) is list:
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def in_key_order(value: Any) -> Any:
    """Return the value with the keys of its objects sorted, as Go prints maps."""
    if type(value) is dict:
        return {name: in_key_order(value[name]) for name in sorted(value)}
    if type(value) is list:
        return [in_key_order(item) for item in value]
    return value
