"""Kubernetes' list functions: order, sum, extremes, positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from instar.cel.equality import equal, less
from instar.cel.functions import Overload, element_shape, method, per_element
from instar.cel.library.operators import duration, to_int, to_uint
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
    param,
)
from instar.cel.values import CelError, Duration, as_list

A = param("A")
_ORDERED = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)


def ascending(left: Any, right: Any) -> int:
    return -1 if less(left, right) else int(less(right, left))


BY_ORDER = cmp_to_key(ascending)


def _is_sorted(values: Any) -> bool:
    items = as_list(values)
    return not any(less(after, before) for before, after in pairwise(items))


def _extreme(name: str, pick: Callable[..., Any]) -> Callable[[Any], Any]:
    def run(values: Any) -> Any:
        items = as_list(values)
        if not items:
            raise CelError(f"{name} called on empty list")
        return pick(items, key=BY_ORDER)

    return run


def _index_of(values: Any, sought: Any) -> int:
    return next((at for at, item in enumerate(values) if equal(item, sought)), -1)


def _last_index_of(values: Any, sought: Any) -> int:
    items = as_list(values)
    return next((at for at in reversed(range(len(items))) if equal(items[at], sought)), -1)


def _sums() -> list[Overload]:
    def total(of: Type, impl: Callable[[list[Any]], Any]) -> Overload:
        return method("sum", (list_of(of),), of, lambda v: impl(as_list(v)), work=per_element)

    return [
        total(INT, lambda items: to_int(sum(items))),
        total(UINT, lambda items: to_uint(sum(int(item) for item in items))),
        total(DOUBLE, lambda items: float(sum(items))),
        total(DURATION, _total_duration),
    ]


def _total_duration(items: list[Duration]) -> Duration:
    return duration(sum(item.nanos for item in items))


def overloads() -> list[Overload]:
    out: list[Overload] = _sums()
    for of in _ordered_lists():
        element = of.params[0]
        out += [
            method("isSorted", (of,), BOOL, _is_sorted, work=per_element, traverses=True),
            method(
                "min",
                (of,),
                element,
                _extreme("min", min),
                work=per_element,
                traverses=True,
                shape=element_shape,
            ),
            method(
                "max",
                (of,),
                element,
                _extreme("max", max),
                work=per_element,
                traverses=True,
                shape=element_shape,
            ),
        ]
    any_list = list_of(A)
    return [
        *out,
        method("indexOf", (any_list, A), INT, _index_of, work=per_element, traverses=True),
        method("lastIndexOf", (any_list, A), INT, _last_index_of, work=per_element, traverses=True),
    ]


def _ordered_lists() -> list[Type]:
    return [list_of(of) for of in _ORDERED]
