"""Converts CEL values to JSON.

Called by mutating policies for built objects and by the OIDC claim expressions for their results.
The result may share parts with the value of a variable.
"""

from __future__ import annotations

import base64
from math import isfinite
from typing import Any

from instar.kube.cel.time_text import format_duration, format_timestamp
from instar.kube.cel.values import (
    CelError,
    Duration,
    ListValue,
    MapValue,
    ObjectValue,
    OptionalValue,
    StructValue,
    Timestamp,
    type_name,
)

_INT64 = 2.0**63
"""A larger float stays one: JSON encoders write no larger integers."""
_EXACT = 1 << 53
_PLAIN = (type(None), bool, str)
_RAW = (ObjectValue, MapValue, ListValue)


def to_json(value: Any, *, long_as_text: bool = False) -> Any:
    """Return the JSON value. Raises CelError for values without a JSON form.

    ``long_as_text``: an integer that a double cannot represent becomes a string, as values of JSON
    patches do.
    """
    root: list[Any] = [value]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        held, key = todo.pop()
        each = held[key]
        if type(each) is OptionalValue:
            each = each.value()
        match each:
            case dict() | StructValue():
                held[key] = out = dict(each if isinstance(each, dict) else each.fields)
                for name in out:
                    if type(name) is not str:
                        raise _unsupported(name, "string")
                todo += [(out, name) for name in out]
            case list():
                held[key] = items = list(each)
                todo += [(items, position) for position in range(len(items))]
            case _:
                held[key] = _scalar(each, long_as_text)
    return root[0]


def _scalar(value: Any, long_as_text: bool) -> Any:
    if type(value) in _PLAIN:
        return value
    if type(value) in _RAW:
        return value.raw
    match value:
        case int():
            return str(int(value)) if long_as_text and abs(value) >= _EXACT else int(value)
        case float() if isfinite(value):
            return int(value) if value.is_integer() and abs(value) < _INT64 else value
        case bytes():
            return base64.b64encode(value).decode()
        case Duration():
            return format_duration(value.nanos)
        case Timestamp():
            return format_timestamp(value.nanos, value.offset)
    raise _unsupported(value, "JSON")


def _unsupported(value: Any, what: str) -> CelError:
    return CelError(f"unsupported type conversion from '{type_name(value)}' to {what}")
