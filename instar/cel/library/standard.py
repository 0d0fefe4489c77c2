"""CEL's own functions: size, conversions, type(), string predicates."""

from __future__ import annotations

import functools
import math
from typing import Any

import re2

from instar.cel.functions import (
    Overload,
    Shape,
    function,
    method,
    per_byte,
    product,
    regex_work,
    same_shape,
    tenth,
)
from instar.cel.times import (
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)
from instar.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    param,
    type_of,
)
from instar.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelError,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    size_of,
    type_name,
)
from instar.fields import go_float

A, B = param("A"), param("B")
_PATTERN_OPTIONS = re2.Options()
_PATTERN_OPTIONS.log_errors = False
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


@functools.lru_cache(maxsize=1024)
def pattern(text: str) -> Any:
    """A compiled RE2 pattern: linear in the text, whatever the pattern."""
    try:
        return re2.compile(text, _PATTERN_OPTIONS)
    except re2.error as error:
        raise CelError(f"error parsing regexp: {error}") from None


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


def _int_from_text(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or not INT_MIN <= int(text) <= INT_MAX:
        raise CelError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def _uint_from_number(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(int(value))


def _uint_from_text(text: str) -> Uint:
    if not (text.isascii() and text.isdigit()) or int(text) > UINT_MAX:
        raise CelError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return Uint(int(text))


def _double_from_text(text: str) -> float:
    try:
        return float(text.strip() and text.replace("_", "x"))
    except ValueError:
        raise CelError(f'strconv.ParseFloat: parsing "{text}": invalid syntax') from None


def _bool_from_text(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise CelError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def _text_from_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return go_float(value)


def _duration_from_text(text: str) -> Duration:
    nanos = parse_duration(text)
    if nanos is None:
        raise CelError(f'time: invalid duration "{text}"')
    return Duration(nanos)


def _timestamp_from_text(text: str) -> Timestamp:
    parsed = parse_timestamp(text)
    if parsed is None:
        raise CelError(f'parsing time "{text}" as RFC 3339: cannot parse')
    return Timestamp(*parsed)


def _same(value: Any) -> Any:
    return value


def _sizes() -> list[Overload]:
    sized = (STRING, BYTES, list_of(A), map_of(A, B))
    functions = [function("size", (of,), INT, size_of) for of in sized]
    return functions + [method("size", (of,), INT, size_of) for of in sized]


def _conversions() -> list[Overload]:
    rows: list[tuple[str, Type, Type, Any]] = [
        ("int", INT, INT, _same),
        ("int", UINT, INT, _int_from_uint),
        ("int", DOUBLE, INT, _int_from_double),
        ("int", STRING, INT, _int_from_text),
        ("int", TIMESTAMP, INT, lambda t: t.nanos // 10**9),
        ("int", DURATION, INT, lambda d: d.nanos),
        ("uint", UINT, UINT, _same),
        ("uint", INT, UINT, _uint_from_number),
        ("uint", DOUBLE, UINT, _uint_from_number),
        ("uint", STRING, UINT, _uint_from_text),
        ("double", DOUBLE, DOUBLE, _same),
        ("double", INT, DOUBLE, float),
        ("double", UINT, DOUBLE, float),
        ("double", STRING, DOUBLE, _double_from_text),
        ("bool", BOOL, BOOL, _same),
        ("bool", STRING, BOOL, _bool_from_text),
        ("string", BOOL, STRING, lambda b: "true" if b else "false"),
        ("string", INT, STRING, str),
        ("string", UINT, STRING, str),
        ("string", DOUBLE, STRING, double_text),
        ("string", TIMESTAMP, STRING, lambda t: format_timestamp(t.nanos, t.offset)),
        ("string", DURATION, STRING, lambda d: format_duration(d.nanos)),
        ("bytes", BYTES, BYTES, _same),
        ("duration", DURATION, DURATION, _same),
        ("duration", STRING, DURATION, _duration_from_text),
        ("timestamp", TIMESTAMP, TIMESTAMP, _same),
        ("timestamp", STRING, TIMESTAMP, _timestamp_from_text),
        ("timestamp", INT, TIMESTAMP, lambda s: Timestamp(s * 10**9)),
    ]
    plain = [function(name, (of,), to, impl, shape=_text_shape) for name, of, to, impl in rows]
    return [
        *plain,
        function("string", (STRING,), STRING, _same, shape=same_shape),
        function("string", (BYTES,), STRING, _text_from_bytes, work=per_byte, shape=same_shape),
        function("bytes", (STRING,), BYTES, str.encode, work=per_byte, shape=same_shape),
        function("dyn", (A,), DYN, _same, shape=same_shape),
        function("type", (A,), type_of(A), lambda value: TypeValue(type_name(value))),
    ]


def _text_shape(_value: Shape) -> Shape:
    """A number or time written out."""
    return Shape(40)


def _predicates() -> list[Overload]:
    def second_read(_text: float, part: float) -> float:
        return tenth(part)

    pair = (STRING, STRING)
    return [
        method("startsWith", pair, BOOL, str.startswith, work=second_read),
        method("endsWith", pair, BOOL, str.endswith, work=second_read),
        method("contains", pair, BOOL, str.__contains__, work=product),
        method("matches", pair, BOOL, matches, work=regex_work),
        function("matches", pair, BOOL, matches, work=regex_work),
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
        ("type", type_of(DYN)),
        ("google.protobuf.Duration", DURATION),
        ("google.protobuf.Timestamp", TIMESTAMP),
    ]
