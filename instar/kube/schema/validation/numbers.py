"""Validation of numbers: range of the type and format, multipleOf, minimum, maximum.

Called by ``validate.py`` and ``fast_validate.py``. Integers and floats use different arithmetic, as
upstream does: a bound is truncated to int64 before it is compared with an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from instar.base.field_errors import FieldError, go_number, invalid

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_FLOAT32_MAX = 3.4028235677973366e38
_JSON_INTEGER_MAX = float(2**53 - 1)
_TOLERANCE = 1e-9

NUMBER_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}
"""The formats that restrict a number of each type."""

_MAX_EXACT_BOUND = 2**53
"""Up to this value a bound is the same as an integer and as a float."""

NumberCheck = Callable[[Any, str, list[FieldError]], None]


def is_json_integer(value: float) -> bool:
    """Return whether a float is integral within upstream's tolerance and exactly representable."""
    if not -_JSON_INTEGER_MAX <= value <= _JSON_INTEGER_MAX:
        return False
    if value.is_integer():
        return True
    if value < 0:
        return False
    whole = float(int(value))
    if whole == 0:
        return False
    return abs(value - whole) / (value + whole) < _TOLERANCE


def compile_numbers(raw: Mapping[str, Any], type_name: str, format: str) -> list[NumberCheck]:
    """Return the checks of one node, in upstream's order; ``format`` is one of the type's, or
    empty."""
    checks: list[NumberCheck] = []
    ranged = _range(type_name, format)
    if ranged is not None:
        checks.append(_range_check(ranged, _range_text("Checked", type_name, format)))
    for keyword, prefix in (
        ("multipleOf", "MultipleOf"),
        ("minimum", "Minimum boundary"),
        ("maximum", "Maximum boundary"),
    ):
        bound = raw.get(keyword)
        if type(bound) is not int and type(bound) is not float:
            continue
        text = _range_text(prefix, type_name, format)
        fits = ranged is None or ranged(float(bound))
        if not fits:
            checks.append(_always(text))
        check = _multiple if keyword == "multipleOf" else _limit(keyword, raw)
        checks.append(check(float(bound), cut=fits))
    return checks


def whole_bounds(raw: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the bounds of an integer if those are all its keywords; else None."""
    if raw.keys() & {"multipleOf", "exclusiveMinimum", "exclusiveMaximum"}:
        return None
    small = raw.get("format") == "int32"
    least, most = (_INT32_MIN, _INT32_MAX) if small else (INT64_MIN, INT64_MAX)
    low, high = raw.get("minimum", least), raw.get("maximum", most)
    for bound in (raw[keyword] for keyword in ("minimum", "maximum") if keyword in raw):
        if type(bound) is not int or abs(bound) >= _MAX_EXACT_BOUND:
            return None
    fits = least <= low and high <= most and low <= most and least <= high
    return (low, high) if fits else None


def _range(type_name: str, format: str) -> Callable[[float], bool] | None:
    if type_name == "integer":
        low, high = (_INT32_MIN, _INT32_MAX) if format == "int32" else (INT64_MIN, INT64_MAX)

        def whole(value: float) -> bool:
            return (type(value) is int or value.is_integer()) and low <= int(value) <= high

        return whole
    if format == "float":
        return lambda value: abs(value) < _FLOAT32_MAX
    return None


def _range_text(prefix: str, type_name: str, format: str) -> str:
    kind = f"with format {format}" if format else "(default format)"
    return f"{prefix} value must be of type {type_name} {kind} in "


def _range_check(fits: Callable[[float], bool], text: str) -> NumberCheck:
    def check(value: Any, path: str, out: list[FieldError]) -> None:
        if not fits(value):
            out.append(invalid("", "", text + path))

    return check


def _always(text: str) -> NumberCheck:
    def check(value: Any, path: str, out: list[FieldError]) -> None:
        out.append(invalid("", "", text + path))

    return check


def _cut(bound: float) -> int:
    """Convert a float to int64, with the wraparound of an out-of-range conversion on amd64."""
    if bound != bound or not INT64_MIN <= bound <= INT64_MAX:
        return INT64_MIN
    return min(int(bound), INT64_MAX)


def _limit(keyword: str, raw: Mapping[str, Any]) -> Callable[..., NumberCheck]:
    upper = keyword == "maximum"
    exclusive = raw.get("exclusiveMaximum" if upper else "exclusiveMinimum") is True
    words = "less than" if upper else "greater than"
    words = words if exclusive else f"{words} or equal to"

    def build(bound: float, *, cut: bool) -> NumberCheck:
        whole: float = _cut(bound) if cut else bound

        def check(value: Any, path: str, out: list[FieldError]) -> None:
            limit = whole if type(value) is int else bound
            within = value < limit if upper else value > limit
            if not within and (exclusive or value != limit):
                shown = value if cut else float(value)
                detail = f"{path} in body should be {words} {go_number(limit)}"
                out.append(invalid(path, shown, detail))

        return check

    return build


def _multiple(factor: float, *, cut: bool) -> NumberCheck:
    whole = _cut(factor)

    def check(value: Any, path: str, out: list[FieldError]) -> None:
        by_integer = cut and type(value) is int
        divisor: float = whole if by_integer else factor
        if divisor <= 0:
            detail = f"factor MultipleOf declared for {path} must be positive: {go_number(divisor)}"
            out.append(invalid(path, divisor, detail))
        elif not (value % whole == 0 if by_integer else _divides(factor, float(value))):
            detail = f"{path} in body should be a multiple of {go_number(divisor)}"
            out.append(invalid(path, value, detail))

    return check


def _divides(factor: float, value: float) -> bool:
    return is_json_integer(1 / factor * value if factor < 1 else value / factor)
