"""Validation of single values: type, enum, string length, pattern, format.

Called by ``validate.py`` and ``fast_validate.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import trunc
from typing import Any, NamedTuple

from instar.base.field_errors import (
    FieldError,
    go_quote,
    invalid,
    not_supported,
    too_long,
    type_invalid,
)
from instar.base.json_values import same_json
from instar.kube.schema.formats.named import Format
from instar.kube.schema.go_json_text import go_json
from instar.kube.schema.json_types import in_key_order
from instar.kube.schema.validation.node import Check
from instar.kube.schema.validation.numbers import is_json_integer
from instar.kube.schema.validation.patterns import PatternError, compile_pattern

_LONGEST_KEPT = 64
"""Maximum length of a type or format name for which the check is shared between schemas."""
_JSON_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}
_GO_FORMATS = {int: "int64", float: "float64"}


def type_checks(types: Sequence[str], format: str, kind: type) -> list[Check]:
    """Return the checks of the type keyword for one Python type; empty when they always pass."""
    got = _JSON_TYPES[kind]
    if kind is type(None):
        return [_wrong_type(",".join(types), got)] if types else []
    if not types and not format:
        return []
    numeric = "integer" in types or "number" in types
    if format and kind in (str, list):
        if not numeric:
            return []
    elif format and kind is not float and not _format_fits(types, format, kind):
        return [_wrong_type(format, _GO_FORMATS.get(kind, ""))]
    if got in types or (kind is int and "number" in types):
        return []
    if kind is float:
        return [_float_type(types, format)]
    return [_wrong_type(",".join(types), got)]


def _format_fits(types: Sequence[str], format: str, kind: type) -> bool:
    fits_number = kind is int and "number" in types
    return _JSON_TYPES[kind] in types or _GO_FORMATS.get(kind) == format or fits_number


def _float_type(types: Sequence[str], format: str) -> Check:
    """Check a float, which is a valid integer if it is integral."""
    wanted, got = (format, "float64") if format else (",".join(types), "number")
    wrong = _wrong_type(wanted, got)
    if "integer" not in types:
        return wrong

    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if not is_json_integer(value):
            wrong(value, old, path, out)

    return check


def _wrong_type(wanted: str, got: str) -> Check:
    make = _known_check if len(wanted) <= _LONGEST_KEPT else _type_check
    return make(wanted, got)


def _type_check(wanted: str, got: str) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        detail = f"{path} in body must be of type {wanted}: {go_quote(got)}"
        out.append(type_invalid(path, got, detail))

    return check


_known_check = lru_cache(maxsize=1024)(_type_check)


def enum_checks(raw: Mapping[str, Any], kind: type) -> list[Check]:
    allowed = raw.get("enum")
    if not isinstance(allowed, list) or not allowed:
        return []
    shown = [entry if isinstance(entry, str) else go_json(entry) for entry in allowed]
    texts = frozenset(entry for entry in allowed if isinstance(entry, str))

    def check_text(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if value not in texts:
            out.append(not_supported(path, value, shown))

    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if not any(_is_entry(value, entry) for entry in allowed):
            out.append(not_supported(path, in_key_order(value), shown))

    return [check_text if kind is str else check]


def _is_entry(value: Any, entry: Any) -> bool:
    """Return whether the value equals an enum entry after conversion to its type; null entries
    match nothing."""
    if entry is None or value is None:
        return False
    if type(value) in (int, float) and type(entry) in (int, float):
        return bool((trunc(value) if type(entry) is int else float(value)) == entry)
    return same_json(value, entry)


class TextLimits(NamedTuple):
    """The length and pattern keywords of a string."""

    least: int
    most: int
    matches: Callable[[str], bool] | None
    """None if there is no pattern."""
    complaint: str = ""


def text_limits(raw: Mapping[str, Any]) -> TextLimits | None:
    """Return the limits, or None if there are none."""
    longest, shortest = _whole(raw.get("maxLength")), _whole(raw.get("minLength"))
    pattern = raw.get("pattern")
    pattern = pattern if isinstance(pattern, str) else ""
    if longest is None and shortest is None and not pattern:
        return None
    least, most = -1 if shortest is None else shortest, 2**63 if longest is None else longest
    if not pattern:
        return TextLimits(least, most, None)
    try:
        return TextLimits(least, most, compile_pattern(pattern), pattern)
    except PatternError as error:
        complaint = f"{pattern}, but pattern is invalid: {error}"
        return TextLimits(least, most, lambda text: False, complaint)


def string_checks(raw: Mapping[str, Any]) -> list[Check]:
    """Return lengths and pattern as one check, because upstream stops at the first failure."""
    limits = text_limits(raw)
    if limits is None:
        return []
    least, most, matches, complaint = limits

    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        size = len(value)
        if size > most:
            out.append(too_long(path, most))
        elif size < least:
            detail = f"{path} in body should be at least {least} chars long"
            out.append(invalid(path, value, detail))
        elif matches is not None and not matches(value):
            out.append(invalid(path, value, f"{path} in body should match '{complaint}'"))

    return [check]


def format_check(name: str, accepts: Format) -> Check:
    def check(value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        if not accepts(value):
            detail = f"{path} in body must be of type {name}: {go_quote(value)}"
            out.append(type_invalid(path, value, detail))

    return check


def _whole(bound: Any) -> int | None:
    return bound if type(bound) is int else None
