"""Operators: logic, equality, order, arithmetic, membership, indexing."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from instar.cel.declared import Declared
from instar.cel.equality import contains, equal, freeze, index, item_key, less
from instar.cel.functions import (
    Overload,
    both_read,
    element_shape,
    function,
    nominal,
    smaller_of,
    summed_shape,
)
from instar.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    param,
)
from instar.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelError,
    Duration,
    ListValue,
    Timestamp,
    Uint,
    as_list,
)

A, B = param("A"), param("B")
_MIN_TIME, _MAX_TIME = -62135596800 * 10**9, 253402300800 * 10**9 - 1


def to_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def to_uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def duration(nanos: int) -> Duration:
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise CelError("integer overflow")


def timestamp(nanos: int, offset: int) -> Timestamp:
    if _MIN_TIME <= nanos <= _MAX_TIME:
        return Timestamp(nanos, offset)
    raise CelError("timestamp overflow")


def _int_divide(left: int, right: int) -> int:
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return to_int(quotient if (left < 0) == (right < 0) else -quotient)


def _int_remainder(left: int, right: int) -> int:
    if right == 0:
        raise CelError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise CelError("integer overflow")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _uint_divide(left: int, right: int) -> Uint:
    if right == 0:
        raise CelError("division by zero")
    return Uint(left // right)


def _uint_remainder(left: int, right: int) -> Uint:
    if right == 0:
        raise CelError("modulus by zero")
    return Uint(left % right)


def _double_divide(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _add_lists(left: Any, right: Any) -> Any:
    """Plain lists concatenate; a set is united, a keyed list replaced by key and appended to."""
    ours, theirs = as_list(left), as_list(right)
    if type(left) is not ListValue or left.declared.list_type == "atomic":
        return ours + theirs
    key = freeze if left.declared.list_type == "set" else partial(item_key, left)
    # A dict keeps the first position of a key and the last value.
    merged = {key(item): item for item in chain(ours, theirs)}
    return ListValue(list(merged.values()), _of_values(left.declared))


def _of_values(declared: Declared) -> Declared:
    """The same list type, of items that are converted already."""
    assert declared.element is not None
    return replace(declared, element=replace(declared.element, convert=lambda value: value))


def _ordering(name: str, compare: Callable[[Any, Any], bool]) -> list[Overload]:
    def plain(of: Type) -> Overload:
        return function(name, (of, of), BOOL, compare)

    def sized(of: Type) -> Overload:
        return function(name, (of, of), BOOL, compare, work=smaller_of)

    numbers = (INT, UINT, DOUBLE)
    mixed = [
        function(name, (left, right), BOOL, compare)
        for left in numbers
        for right in numbers
        if left is not right
    ]
    same = [plain(of) for of in (*numbers, BOOL, DURATION, TIMESTAMP)]
    return [*same, sized(STRING), sized(BYTES), *mixed]


def _arithmetic() -> list[Overload]:
    return [
        function("_+_", (INT, INT), INT, lambda a, b: to_int(a + b)),
        function("_+_", (UINT, UINT), UINT, lambda a, b: to_uint(int(a) + int(b))),
        function("_+_", (DOUBLE, DOUBLE), DOUBLE, operator.add),
        function("_+_", (STRING, STRING), STRING, operator.add, work=both_read, shape=summed_shape),
        function("_+_", (BYTES, BYTES), BYTES, operator.add, work=both_read, shape=summed_shape),
        function(
            "_+_",
            (list_of(A), list_of(A)),
            list_of(A),
            _add_lists,
            work=lambda left, right: 1 + (left + right) // 10,
            estimate=nominal,
            shape=summed_shape,
        ),
        function("_+_", (DURATION, DURATION), DURATION, lambda a, b: duration(a.nanos + b.nanos)),
        function(
            "_+_",
            (DURATION, TIMESTAMP),
            TIMESTAMP,
            lambda a, b: timestamp(a.nanos + b.nanos, b.offset),
        ),
        function(
            "_+_",
            (TIMESTAMP, DURATION),
            TIMESTAMP,
            lambda a, b: timestamp(a.nanos + b.nanos, a.offset),
        ),
        function("_-_", (INT, INT), INT, lambda a, b: to_int(a - b)),
        function("_-_", (UINT, UINT), UINT, lambda a, b: to_uint(int(a) - int(b))),
        function("_-_", (DOUBLE, DOUBLE), DOUBLE, operator.sub),
        function("_-_", (DURATION, DURATION), DURATION, lambda a, b: duration(a.nanos - b.nanos)),
        function(
            "_-_",
            (TIMESTAMP, DURATION),
            TIMESTAMP,
            lambda a, b: timestamp(a.nanos - b.nanos, a.offset),
        ),
        function("_-_", (TIMESTAMP, TIMESTAMP), DURATION, lambda a, b: duration(a.nanos - b.nanos)),
        function("_*_", (INT, INT), INT, lambda a, b: to_int(a * b)),
        function("_*_", (UINT, UINT), UINT, lambda a, b: to_uint(int(a) * int(b))),
        function("_*_", (DOUBLE, DOUBLE), DOUBLE, operator.mul),
        function("_/_", (INT, INT), INT, _int_divide),
        function("_/_", (UINT, UINT), UINT, _uint_divide),
        function("_/_", (DOUBLE, DOUBLE), DOUBLE, _double_divide),
        function("_%_", (INT, INT), INT, _int_remainder),
        function("_%_", (UINT, UINT), UINT, _uint_remainder),
        function("-_", (INT,), INT, lambda a: to_int(-a)),
        function("-_", (DOUBLE,), DOUBLE, operator.neg),
        function("-_", (DURATION,), DURATION, lambda a: duration(-a.nanos)),
    ]


def _not_evaluated(*_values: Any) -> Any:
    raise AssertionError("the interpreter evaluates this operator itself")


def _logic() -> list[Overload]:
    return [
        function("_&&_", (BOOL, BOOL), BOOL, _not_evaluated),
        function("_||_", (BOOL, BOOL), BOOL, _not_evaluated),
        function("_?_:_", (BOOL, A, A), A, _not_evaluated),
        function("!_", (BOOL,), BOOL, operator.not_),
        function("_==_", (A, A), BOOL, equal, work=smaller_of),
        function("_!=_", (A, A), BOOL, lambda a, b: not equal(a, b), work=smaller_of),
    ]


def _access() -> list[Overload]:
    def in_list(_value: float, size: float) -> float:
        return max(1, size)

    def held(value: Any, container: Any) -> bool:
        return contains(container, value)

    pair, keyed = list_of(A), map_of(A, B)
    return [
        function("@in", (A, pair), BOOL, held, work=in_list),
        function("@in", (A, keyed), BOOL, held),
        function("_[_]", (pair, INT), A, index, shape=element_shape),
        function("_[_]", (keyed, A), B, index, shape=element_shape),
        function("_[_]", (optional_of(pair), INT), optional_of(A), index, shape=element_shape),
        function("_[_]", (optional_of(keyed), A), optional_of(B), index, shape=element_shape),
    ]


def overloads() -> list[Overload]:
    return [
        *_logic(),
        *_access(),
        *_arithmetic(),
        *_ordering("_<_", less),
        *_ordering("_<=_", lambda a, b: not less(b, a) if not _nan(a, b) else False),
        *_ordering("_>_", lambda a, b: less(b, a)),
        *_ordering("_>=_", lambda a, b: not less(a, b) if not _nan(a, b) else False),
    ]


def _nan(left: Any, right: Any) -> bool:
    return bool(left != left or right != right)
