"""Text of CEL values in error messages and ``string()``, as Go writes them.

Called by the interpreter (``runtime/``), ``library/standard.py`` and ``library/formatting.py``.
"""

from __future__ import annotations

from math import isinf, isnan
from typing import Any

from instar.base.field_errors import go_number
from instar.kube.cel.time_text import format_duration, format_timestamp
from instar.kube.cel.values import Duration, OptionalValue, Timestamp, TypeValue


def double_text(value: float) -> str:
    """Return a double as ``string()`` and ``%s`` write it."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    return go_number(value)


def show_key(value: Any) -> str:
    """Return a key or index as in ``no such key: …``."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float():
            return double_text(value)
        case int() | str():
            return str(value)
        case bytes():
            return "[" + " ".join(map(str, value)) + "]"
        case Duration():
            return format_duration(value.nanos)
        case Timestamp():
            return format_timestamp(value.nanos, value.offset)
        case TypeValue():
            return value.name
    return str(value)


_GO_NAMES = {
    bytes: "types.Bytes",
    type(None): "types.Null",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    TypeValue: "*types.Type",
    OptionalValue: "*types.Optional",
}


def go_name(value: Any) -> str:
    """Return the Go type name of a value, which some errors contain."""
    return _GO_NAMES.get(type(value), f"types.{type(value).__name__}")
