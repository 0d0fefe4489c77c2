"""``'text %s'.format([...])``: the clauses %s %d %f %e %b %x %X %o and ``%%``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from instar.cel.times import format_duration, format_timestamp
from instar.cel.values import (
    CelError,
    Duration,
    ObjectValue,
    Timestamp,
    TypeValue,
    as_list,
    is_list,
    is_map,
    type_name,
)

_CLAUSE = re.compile(r"%(?:\.([0-9]+))?(.?)", re.DOTALL)
_DEFAULT_PRECISION = 6
_MAX_PRECISION = 1000


def format_text(template: str, arguments: Any) -> str:
    values = iter(as_list(arguments))
    position = -1

    def clause(match: re.Match[str]) -> str:
        nonlocal position
        precision, verb = match.groups()
        if verb == "%":
            return "%"
        writer = _VERBS.get(verb)
        if writer is None:
            raise CelError(
                f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
            )
        position += 1
        try:
            value = next(values)
        except StopIteration:
            raise CelError(f"index {position} out of range") from None
        return writer(value, _precision(precision))

    return _CLAUSE.sub(clause, template)


def _precision(text: str | None) -> int:
    count = _DEFAULT_PRECISION if text is None else int(text)
    if count > _MAX_PRECISION:
        raise CelError("precision too large")
    return count


def show(value: Any) -> str:
    """A value as ``%s`` writes it."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(int(value))
    if kind is float:
        return _double(value)
    if kind is bytes:
        return str(value.decode(errors="replace"))
    if kind is Duration:
        return format_duration(value.nanos)
    if kind is Timestamp:
        return format_timestamp(value.nanos, value.offset)
    if kind is TypeValue:
        return str(value.name)
    if is_list(value):
        return "[" + ", ".join(show(item) for item in value) + "]"
    if is_map(value):
        shown = sorted((show(key), show(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in shown) + "}"
    if kind is ObjectValue:
        raise CelError(_wrong("string", value))
    return str(value)


def _double(value: float) -> str:
    special = _special(value)
    if special is not None:
        return special
    return str(int(value)) if value == int(value) and abs(value) < 1e21 else repr(value)


def _special(value: float) -> str | None:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _wrong(clause: str, value: Any) -> str:
    return f"error during formatting: {clause} clause can not be used on {type_name(value)}"


def _integer(value: Any, _precision: int) -> str:
    if type(value) is bool or not isinstance(value, int):
        raise CelError(_wrong("decimal", value))
    return str(int(value))


def _fixed(value: Any, precision: int) -> str:
    number = _number(value, "fixed-point")
    return _special(number) or f"{number:.{precision}f}"


def _scientific(value: Any, precision: int) -> str:
    number = _number(value, "scientific")
    return _special(number) or f"{number:.{precision}e}"


def _number(value: Any, clause: str) -> float:
    if type(value) is bool or not isinstance(value, (int, float)):
        raise CelError(_wrong(clause, value))
    return float(value)


def _binary(value: Any, _precision: int) -> str:
    if not isinstance(value, int):
        raise CelError(_wrong("binary", value))
    return format(int(value), "b")


def _octal(value: Any, _precision: int) -> str:
    if type(value) is bool or not isinstance(value, int):
        raise CelError(_wrong("octal", value))
    return format(int(value), "o")


def _hex(value: Any, _precision: int) -> str:
    if type(value) is str:
        return value.encode().hex()
    if type(value) is bytes:
        return value.hex()
    if type(value) is bool or not isinstance(value, int):
        raise CelError(_wrong("hex", value))
    return format(int(value), "x")


_VERBS: dict[str, Callable[[Any, int], str]] = {
    "s": lambda value, _precision: show(value),
    "d": _integer,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": lambda value, precision: _hex(value, precision).upper(),
}
