"""Kubernetes' CEL list functions: isSorted, sum, min, max, indexOf, lastIndexOf.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from itertools import chain, pairwise
from typing import Any

from instar.kube.cel.checking.cost_ranges import ONE
from instar.kube.cel.equality import equal, less
from instar.kube.cel.functions import TRAVERSAL, CallSite, CostEstimate, Overload, is_text, method
from instar.kube.cel.library.operators import duration, to_int, to_uint
from instar.kube.cel.types import (
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
from instar.kube.cel.values import CelError, Duration, ObjectValue, as_list, is_list, is_map

A = param("A")
_ORDERED = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)


def estimated_traversal(site: CallSite) -> CostEstimate:
    """Estimate reading every element once, and its characters if it is a text."""
    element, size = site.element()
    if element is None:
        return CostEstimate(site.receiver().scaled(TRAVERSAL))
    each = ONE.plus(size.scaled(TRAVERSAL)) if is_text(element) else ONE
    return CostEstimate(site.receiver().times(each))


def traversal_cost(values: Sequence[Any], _result: Any) -> int:
    """Return the cost of traversing the first argument as a tree."""
    total, todo = 0, [values[0]]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            total += int(len(value.encode(errors="surrogatepass")) * TRAVERSAL)
        elif isinstance(value, bytes):
            total += int(len(value) * TRAVERSAL)
        elif is_list(value):
            todo += value
        elif is_map(value) or type(value) is ObjectValue:
            todo += chain.from_iterable(value.items())
        else:
            total += 1
    return total


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


def _traversing_method(name: str, params: tuple[Type, ...], result: Type, impl: Any) -> Overload:
    return method(
        name, params, result, impl, weigh=traversal_cost, estimate=estimated_traversal, by_name=True
    )


def _sums() -> list[Overload]:
    def total(of: Type, impl: Callable[[list[Any]], Any]) -> Overload:
        return _traversing_method("sum", (list_of(of),), of, lambda v: impl(as_list(v)))

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
    for element in _ORDERED:
        of = (list_of(element),)
        out += [
            _traversing_method("isSorted", of, BOOL, _is_sorted),
            _traversing_method("min", of, element, _extreme("min", min)),
            _traversing_method("max", of, element, _extreme("max", max)),
        ]
    any_list = list_of(A)
    return [
        *out,
        _traversing_method("indexOf", (any_list, A), INT, _index_of),
        _traversing_method("lastIndexOf", (any_list, A), INT, _last_index_of),
    ]
