"""CEL operators: logic, equality, order, arithmetic, membership, indexing.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from instar.kube.cel.checking.cost_ranges import ONE, Range
from instar.kube.cel.declared_types import Declared
from instar.kube.cel.equality import freeze, item_key, less
from instar.kube.cel.functions import (
    TRAVERSAL,
    CallSite,
    CostEstimate,
    Overload,
    function,
    traversal_cost,
)
from instar.kube.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    CelKind,
    Type,
    list_of,
    map_of,
    optional_of,
    param,
)
from instar.kube.cel.values import (
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
    """Concatenate lists; sets are united, keyed lists are replaced by key and appended to."""
    ours, theirs = as_list(left), as_list(right)
    if type(left) is not ListValue or left.declared.list_type == "atomic":
        return ours + theirs
    key = freeze if left.declared.list_type == "set" else partial(item_key, left)
    # A dict keeps the first position of a key and the last value.
    merged = {key(item): item for item in chain(ours, theirs)}
    return ListValue(list(merged.values()), _of_values(left.declared))


def _of_values(declared: Declared) -> Declared:
    """Return the same list type for items that are already converted."""
    assert declared.element is not None
    return replace(declared, element=replace(declared.element, convert=lambda value: value))


def _ordering_overloads(name: str, compare: Callable[[Any, Any], bool]) -> list[Overload]:
    def plain(of: Type) -> Overload:
        return function(name, (of, of), BOOL, compare)

    def sized(of: Type) -> Overload:
        return function(
            name, (of, of), BOOL, compare, work=_smaller_read, estimate=_estimated_comparison
        )

    numbers = (INT, UINT, DOUBLE)
    across = [function(name, (a, b), BOOL, compare) for a in numbers for b in numbers]
    return [
        plain(BOOL),
        *across,
        sized(STRING),
        sized(BYTES),
        plain(TIMESTAMP),
        plain(DURATION),
    ]


def _smaller_read(left: int, right: int) -> int:
    return traversal_cost(left if left < right else right)


def _estimated_comparison(site: CallSite) -> CostEstimate:
    """Estimate reading the shorter side once; two sides without a size cost nothing."""
    left, right = site.args
    most = min(left.known().high, right.known().high)
    return CostEstimate(Range(1 if most else 0, most).scaled(TRAVERSAL))


_ONE_UNIT = ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver")
_LONGEST_FORMAT_NAME = 64


def _estimated_equality(site: CallSite) -> CostEstimate:
    """Estimate equality; Kubernetes' own types have their own cost."""
    left, right = site.args
    if left.type == right.type and left.type.kind in (CelKind.OPAQUE, CelKind.OBJECT):
        name = left.type.name
        if name in _ONE_UNIT or name.startswith("kubernetes.authorization."):
            return CostEstimate(ONE)
        if name == "kubernetes.NamedFormat":
            return CostEstimate(Range(1, _LONGEST_FORMAT_NAME).scaled(TRAVERSAL))
        if name == "kubernetes.URL":
            most = 1 if right.size is None else right.size.high
            return CostEstimate(Range(1, most).scaled(TRAVERSAL))
    return _estimated_comparison(site)


def _both(site: CallSite) -> Range:
    return site.args[0].known().plus(site.args[1].known())


def _concatenation(of: Type) -> Overload:
    def estimated(site: CallSite) -> CostEstimate:
        size = _both(site)
        return CostEstimate(size.scaled(TRAVERSAL), size)

    return function(
        "_+_",
        (of, of),
        of,
        operator.add,
        work=lambda left, right: traversal_cost(left + right),
        estimate=estimated,
    )


def _addition() -> list[Overload]:
    def later(moment: Timestamp, length: Duration) -> Timestamp:
        return timestamp(moment.nanos + length.nanos, moment.offset)

    return [
        _concatenation(BYTES),
        function("_+_", (DOUBLE, DOUBLE), DOUBLE, operator.add),
        function("_+_", (DURATION, DURATION), DURATION, lambda a, b: duration(a.nanos + b.nanos)),
        function("_+_", (DURATION, TIMESTAMP), TIMESTAMP, lambda a, b: later(b, a)),
        function("_+_", (TIMESTAMP, DURATION), TIMESTAMP, later),
        function("_+_", (INT, INT), INT, lambda a, b: to_int(a + b)),
        function(
            "_+_",
            (list_of(A), list_of(A)),
            list_of(A),
            _add_lists,
            work=lambda _left, _right: 1,
            estimate=lambda site: CostEstimate(ONE, _both(site)),
        ),
        _concatenation(STRING),
        function("_+_", (UINT, UINT), UINT, lambda a, b: to_uint(int(a) + int(b))),
    ]


def _subtraction() -> list[Overload]:
    def between(one: Any, other: Any) -> Duration:
        return duration(one.nanos - other.nanos)

    def earlier(moment: Timestamp, length: Duration) -> Timestamp:
        return timestamp(moment.nanos - length.nanos, moment.offset)

    return [
        function("_-_", (DOUBLE, DOUBLE), DOUBLE, operator.sub),
        function("_-_", (DURATION, DURATION), DURATION, between),
        function("_-_", (INT, INT), INT, lambda a, b: to_int(a - b)),
        function("_-_", (TIMESTAMP, DURATION), TIMESTAMP, earlier),
        function("_-_", (TIMESTAMP, TIMESTAMP), DURATION, between),
        function("_-_", (UINT, UINT), UINT, lambda a, b: to_uint(int(a) - int(b))),
    ]


def _multiplication() -> list[Overload]:
    return [
        function("_*_", (DOUBLE, DOUBLE), DOUBLE, operator.mul),
        function("_*_", (INT, INT), INT, lambda a, b: to_int(a * b)),
        function("_*_", (UINT, UINT), UINT, lambda a, b: to_uint(int(a) * int(b))),
        function("_/_", (DOUBLE, DOUBLE), DOUBLE, _double_divide),
        function("_/_", (INT, INT), INT, _int_divide),
        function("_/_", (UINT, UINT), UINT, _uint_divide),
        function("_%_", (INT, INT), INT, _int_remainder),
        function("_%_", (UINT, UINT), UINT, _uint_remainder),
        function("-_", (DOUBLE,), DOUBLE, operator.neg),
        function("-_", (INT,), INT, lambda a: to_int(-a)),
    ]


def _raise_not_evaluated(*_values: Any) -> Any:
    raise AssertionError("the interpreter evaluates this operator itself")


def _logic() -> list[Overload]:
    return [
        function("_&&_", (BOOL, BOOL), BOOL, _raise_not_evaluated),
        function("_||_", (BOOL, BOOL), BOOL, _raise_not_evaluated),
        function("_?_:_", (BOOL, A, A), A, _raise_not_evaluated),
        function("!_", (BOOL,), BOOL, operator.not_),
        function("@not_strictly_false", (BOOL,), BOOL, _raise_not_evaluated),
        function("_==_", (A, A), BOOL, _raise_not_evaluated, estimate=_estimated_equality),
        function("_!=_", (A, A), BOOL, _raise_not_evaluated, estimate=_estimated_comparison),
    ]


def _estimated_membership(site: CallSite) -> CostEstimate:
    return CostEstimate(site.args[1].known())


def _access() -> list[Overload]:
    """Declare element access, which the interpreter evaluates itself."""
    pair, keyed = list_of(A), map_of(A, B)
    maybe_pair, maybe_keyed = optional_of(pair), optional_of(keyed)
    found, value = optional_of(A), optional_of(B)
    rows: list[tuple[str, tuple[Type, Type], Type]] = [
        ("@in", (A, keyed), BOOL),
        ("_[_]", (pair, INT), A),
        ("_[_]", (keyed, A), B),
        ("_[_]", (maybe_pair, INT), found),
        ("_[_]", (maybe_keyed, A), value),
        ("_[?_]", (pair, INT), found),
        ("_[?_]", (maybe_pair, INT), found),
        ("_[?_]", (keyed, A), value),
        ("_[?_]", (maybe_keyed, A), value),
        ("_?._", (DYN, STRING), found),
    ]
    return [
        function("@in", (A, pair), BOOL, _raise_not_evaluated, estimate=_estimated_membership),
        *(function(name, params, result, _raise_not_evaluated) for name, params, result in rows),
        function("cel.@mapInsert", (keyed, A, B), keyed, _raise_not_evaluated),
        function("cel.@mapInsert", (keyed, keyed), keyed, _raise_not_evaluated),
    ]


def overloads() -> list[Overload]:
    return [
        *_logic(),
        *_access(),
        *_addition(),
        *_subtraction(),
        *_multiplication(),
        *_ordering_overloads("_<_", less),
        *_ordering_overloads("_<=_", lambda a, b: not less(b, a)),
        *_ordering_overloads("_>_", lambda a, b: less(b, a)),
        *_ordering_overloads("_>=_", lambda a, b: not less(a, b)),
    ]
