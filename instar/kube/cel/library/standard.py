"""CEL's standard functions: size, conversions, type(), string predicates.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import re2

from instar.base.weighted_lru import WeightedLru
from instar.kube.cel.checking.cost_ranges import MOST, Range
from instar.kube.cel.functions import (
    TRAVERSAL,
    CallSite,
    CostEstimate,
    Overload,
    estimated_once,
    estimated_regex,
    first_argument_cost,
    function,
    method,
    regex_cost,
    traversal_cost,
)
from instar.kube.cel.go_text import double_text
from instar.kube.cel.time_text import (
    FIRST_SECOND,
    LAST_SECOND,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)
from instar.kube.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    param,
    type_of,
)
from instar.kube.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelError,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    type_name,
)

A, B = param("A"), param("B")
_PATTERN_OPTIONS = re2.Options()
_PATTERN_OPTIONS.log_errors = False
_PROGRAM, _CHARACTER = 16 << 10, 256
"""Approximate bytes of a compiled pattern."""
_PATTERNS: WeightedLru[str, Any] = WeightedLru(16 << 20)
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")
_MOST_DIGITS = 20
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:e[+-]?[0-9]++)?+|inf(?:inity)?|nan"
    r"|0x(?:[0-9a-f]++(?:\.[0-9a-f]*+)?+|\.[0-9a-f]++)p[+-]?[0-9]++)",
    re.ASCII | re.IGNORECASE,
)


def pattern(text: str) -> Any:
    """Return a compiled RE2 pattern, which matches in linear time."""
    known = _PATTERNS.get(text)
    if known is None:
        known = _PATTERNS.put(text, _pattern(text), _PROGRAM + _CHARACTER * len(text))
    return known


def _pattern(text: str) -> Any:
    try:
        return re2.compile(text, _PATTERN_OPTIONS)
    except re2.error as error:
        found = error.args[0] if error.args else ""
        reason = found.decode(errors="replace") if isinstance(found, bytes) else str(found)
        raise CelError(f"error parsing regexp: {_as_go(reason)}") from None


def _as_go(reason: str) -> str:
    """Reword an error of C++ RE2 to Go's, which quotes the offending part."""
    kind, colon, part = reason.partition(": ")
    return f"{kind}: `{part}`" if colon else reason


def matches(text: str, expression: str) -> bool:
    return pattern(expression).search(text) is not None


def _int_from_double(value: float) -> int:
    if math.isnan(value) or not INT_MIN < value < INT_MAX:
        raise CelError("integer overflow")
    return int(value)


def _int_from_uint(value: int) -> int:
    if value > INT_MAX:
        raise CelError("integer overflow")
    return int(value)


def _misread(target: str) -> CelError:
    return CelError(f"type conversion error from 'string' to '{target}'")


def _whole(text: str) -> int | None:
    """Parse a decimal number of at most 64 bits; more digits are rejected without computing."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None
    return -int(digits) if text.startswith("-") else int(digits)


def _int_from_text(text: str) -> int:
    value = _whole(text)
    if value is None or not INT_MIN <= value <= INT_MAX:
        raise _misread("int")
    return value


def _uint_from_number(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(int(value))


def _uint_from_text(text: str) -> Uint:
    value = None if text[:1] in ("-", "+") else _whole(text)
    if value is None or value > UINT_MAX:
        raise _misread("uint")
    return Uint(value)


def _double_from_text(text: str) -> float:
    if _DOUBLE.fullmatch(text) is None:
        raise _misread("double")
    value = float.fromhex(text) if "x" in text.lower() else float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise _misread("double")
    return value


def _bool_from_text(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _misread("bool")


def _text_from_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _duration_from_text(text: str) -> Duration:
    nanos = parse_duration(text)
    if nanos is None:
        raise _misread("google.protobuf.Duration")
    return Duration(nanos)


def _no_duration(_seconds: int) -> Duration:
    """Fail: upstream declares this conversion but does not implement it."""
    raise CelError("type conversion error from 'int' to 'google.protobuf.Duration'")


def _timestamp_from_text(text: str) -> Timestamp:
    parsed = parse_timestamp(text)
    if parsed is None:
        raise _misread("google.protobuf.Timestamp")
    return _timestamp(*parsed)


def _timestamp(nanos: int, offset: int = 0) -> Timestamp:
    if not FIRST_SECOND <= nanos // 10**9 <= LAST_SECOND:
        raise CelError("timestamp overflow")
    return Timestamp(nanos, offset)


def _same(value: Any) -> Any:
    return value


def _sizes() -> list[Overload]:
    sized: list[tuple[Type, Callable[[Any], int]]] = [
        (BYTES, len),
        (list_of(A), _count),
        (map_of(A, B), _count),
        (STRING, len),
    ]
    functions = [function("size", (of,), INT, impl) for of, impl in sized]
    return functions + [method("size", (of,), INT, impl) for of, impl in sized]


def _count(value: Any) -> int:
    kind = type(value)
    return len(value) if kind is list or kind is dict else len(value.raw)


def _conversions() -> list[Overload]:
    rows: list[tuple[str, Type, Type, Any]] = [
        ("type", A, type_of(A), lambda value: TypeValue(type_name(value))),
        ("bool", BOOL, BOOL, _same),
        ("bool", STRING, BOOL, _bool_from_text),
        ("bytes", BYTES, BYTES, _same),
        ("double", DOUBLE, DOUBLE, _same),
        ("double", INT, DOUBLE, float),
        ("double", STRING, DOUBLE, _double_from_text),
        ("double", UINT, DOUBLE, float),
        ("duration", DURATION, DURATION, _same),
        ("duration", INT, DURATION, _no_duration),
        ("duration", STRING, DURATION, _duration_from_text),
        ("dyn", A, DYN, _same),
        ("int", INT, INT, _same),
        ("int", DOUBLE, INT, _int_from_double),
        ("int", DURATION, INT, lambda d: d.nanos),
        ("int", STRING, INT, _int_from_text),
        ("int", TIMESTAMP, INT, lambda t: t.nanos // 10**9),
        ("int", UINT, INT, _int_from_uint),
        ("string", STRING, STRING, _same),
        ("string", BOOL, STRING, lambda b: "true" if b else "false"),
        ("string", DOUBLE, STRING, double_text),
        ("string", DURATION, STRING, lambda d: format_duration(d.nanos)),
        ("string", INT, STRING, str),
        ("string", TIMESTAMP, STRING, lambda t: format_timestamp(t.nanos, t.offset)),
        ("string", UINT, STRING, str),
        ("timestamp", TIMESTAMP, TIMESTAMP, _same),
        ("timestamp", INT, TIMESTAMP, lambda s: _timestamp(s * 10**9)),
        ("timestamp", STRING, TIMESTAMP, _timestamp_from_text),
        ("uint", UINT, UINT, _same),
        ("uint", DOUBLE, UINT, _uint_from_number),
        ("uint", INT, UINT, _uint_from_number),
        ("uint", STRING, UINT, _uint_from_text),
    ]
    return [
        *(function(name, (of,), to, impl) for name, of, to, impl in rows),
        function(
            "string",
            (BYTES,),
            STRING,
            _text_from_bytes,
            work=first_argument_cost,
            estimate=_estimated_text_of_bytes,
        ),
        function(
            "bytes",
            (STRING,),
            BYTES,
            str.encode,
            work=first_argument_cost,
            estimate=_estimated_bytes_of_text,
        ),
    ]


def _estimated_text_of_bytes(site: CallSite) -> CostEstimate:
    """Estimate; a character takes up to four bytes."""
    size = site.args[0].known()
    return CostEstimate(size.scaled(TRAVERSAL), Range(size.low // 4, size.high))


def _estimated_bytes_of_text(site: CallSite) -> CostEstimate:
    size = site.args[0].known()
    return CostEstimate(size.scaled(TRAVERSAL), Range(size.low, size.high * 4 & MOST))


def _estimated_search(site: CallSite) -> CostEstimate:
    text = site.receiver().scaled(TRAVERSAL)
    return CostEstimate(text.times(site.args[0].known().scaled(TRAVERSAL)))


def _predicates() -> list[Overload]:
    """Declare the predicates. As upstream, a run is charged by the text, an estimate by the
    searched part."""

    def searched(text: int, part: int) -> int:
        return traversal_cost(text) * traversal_cost(part)

    def read(text: int, _part: int) -> int:
        return traversal_cost(text)

    pair = (STRING, STRING)
    return [
        method("startsWith", pair, BOOL, str.startswith, work=read, estimate=estimated_once),
        method("endsWith", pair, BOOL, str.endswith, work=read, estimate=estimated_once),
        method("contains", pair, BOOL, str.__contains__, work=searched, estimate=_estimated_search),
        method("matches", pair, BOOL, matches, work=regex_cost, estimate=estimated_regex),
        function("matches", pair, BOOL, matches),
    ]


def overloads() -> list[Overload]:
    return [*_sizes(), *_conversions(), *_predicates()]


def type_names() -> list[tuple[str, Type]]:
    primitives = (BOOL, INT, UINT, DOUBLE, STRING, BYTES)
    return [
        *((each.name, each) for each in primitives),
        ("list", list_of(DYN)),
        ("map", map_of(DYN, DYN)),
        ("null_type", NULL),
        ("type", TYPE),
        ("google.protobuf.Duration", DURATION),
        ("google.protobuf.Timestamp", TIMESTAMP),
    ]
