"""JSON value helpers of the schema modules: the ABSENT marker and key order.

Called by validation, pipeline, apply and the reviewer.
"""

from __future__ import annotations

from typing import Any


class _Absent:
    """Marker for a missing value, as opposed to null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


def in_key_order(value: Any) -> Any:
    """Return the value with the keys of its objects sorted, as Go prints maps."""
    if type(value) is dict:
        return {name: in_key_order(value[name]) for name in sorted(value)}
    if type(value) is list:
        return [in_key_order(item) for item in value]
    return value
