"""CEL lists extension, version 3: slice, flatten, sort, sortBy, reverse, distinct, range.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from instar.kube.cel.checking.cost_ranges import MOST, Range, exactly
from instar.kube.cel.equality import freeze, index
from instar.kube.cel.functions import (
    LIST_COST,
    TRAVERSAL,
    Argument,
    CallSite,
    CostEstimate,
    Overload,
    Weigh,
    function,
    is_text,
    method,
)
from instar.kube.cel.library.lists import BY_ORDER
from instar.kube.cel.syntax.ast import Const
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
    Type,
    list_of,
    param,
)
from instar.kube.cel.values import CelError, CostExceeded, as_list, is_list, size_of

A, B = param("A"), param("B")
_SORTABLE = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_MAX_RANGE = 1_000_000


def _slice(values: Any, start: int, end: int) -> list[Any]:
    items = as_list(values)
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(values: Any, depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    out: list[Any] = []
    for item in values:
        if is_list(item) and depth > 0:
            out += _flatten(item, depth - 1)
        else:
            out.append(item)
    return out


def _sort(values: Any) -> list[Any]:
    return sorted(as_list(values), key=BY_ORDER)


def _sort_by_keys(values: Any, keys: Any) -> list[Any]:
    pairs = zip(as_list(values), as_list(keys), strict=True)
    return [item for item, _ in sorted(pairs, key=lambda pair: BY_ORDER(pair[1]))]


def _distinct(values: Any) -> list[Any]:
    seen: dict[Any, Any] = {}
    for item in values:
        seen.setdefault(freeze(item), item)
    return list(seen.values())


def _range(count: int) -> list[int]:
    if count > _MAX_RANGE:
        raise CostExceeded(count)
    return list(range(count))


def _allocation_estimate(factor: float, size: Range) -> CostEstimate:
    """Estimate a call that builds a list: the call, the list, and the cost per element."""
    return CostEstimate(size.scaled(factor).plus(exactly(1 + LIST_COST)), size)


def _literal_count(argument: Argument, otherwise: int) -> int:
    node = argument.node
    if isinstance(node, Const) and type(node.value) is int:
        return max(node.value, 0)
    return otherwise


def _estimated_slice(site: CallSite) -> CostEstimate:
    start = _literal_count(site.args[0], 0)
    end = _literal_count(site.args[1], site.receiver().high)
    return _allocation_estimate(1, exactly(end - start & MOST))


def _estimated_range(site: CallSite) -> CostEstimate:
    return _allocation_estimate(1, exactly(_literal_count(site.args[0], MOST)))


def _estimated_flatten(site: CallSite) -> CostEstimate:
    depth = _literal_count(site.args[0], MOST) if site.args else 1
    return _allocation_estimate(float(depth), site.receiver())


def _estimated_copy(site: CallSite) -> CostEstimate:
    return _allocation_estimate(1, site.receiver())


def _pairwise_estimate(size: Range, element: Type | None = None) -> CostEstimate:
    """Estimate comparing every element with every other; texts have a higher cost."""
    factor = 2.0 + (TRAVERSAL if element is not None and is_text(element) else 0)
    return _allocation_estimate(factor, size.times(size))


def _list_cost(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST_COST


def _as_long_as_result(_values: Sequence[Any], result: Any) -> int:
    return _list_cost(1, size_of(result))


def _flatten_cost(values: Sequence[Any], _result: Any) -> int:
    depth = values[1] if len(values) == 2 and isinstance(values[1], int) else 1
    return _list_cost(float(depth), size_of(values[0]))


def _pairwise_cost(position: int) -> Weigh:
    def weigh(values: Sequence[Any], _result: Any) -> int:
        held = values[position]
        size = size_of(held)
        texts = size and is_list(held) and type(index(held, 0)) in (str, bytes)
        return _list_cost(2.0 + (TRAVERSAL if texts else 0), size * size)

    return weigh


def _sort_methods(of: Type) -> list[Overload]:
    any_list = list_of(A)
    return [
        method(
            "sort",
            (list_of(of),),
            list_of(of),
            _sort,
            weigh=_pairwise_cost(0),
            estimate=lambda site: _pairwise_estimate(site.receiver(), of),
        ),
        method(
            "@sortByAssociatedKeys",
            (any_list, list_of(of)),
            any_list,
            _sort_by_keys,
            weigh=_pairwise_cost(1),
            estimate=lambda site: _pairwise_estimate(site.args[0].known(), of),
        ),
    ]


def overloads() -> list[Overload]:
    any_list = list_of(A)
    return [
        *chain.from_iterable(map(_sort_methods, _SORTABLE)),
        method(
            "slice",
            (any_list, INT, INT),
            any_list,
            _slice,
            weigh=_as_long_as_result,
            estimate=_estimated_slice,
        ),
        method(
            "flatten",
            (list_of(any_list),),
            any_list,
            _flatten,
            weigh=_flatten_cost,
            estimate=_estimated_flatten,
        ),
        method(
            "flatten",
            (list_of(DYN), INT),
            list_of(DYN),
            _flatten,
            weigh=_flatten_cost,
            estimate=_estimated_flatten,
        ),
        method(
            "reverse",
            (any_list,),
            any_list,
            lambda values: as_list(values)[::-1],
            weigh=_as_long_as_result,
            estimate=_estimated_copy,
        ),
        method(
            "distinct",
            (any_list,),
            any_list,
            _distinct,
            weigh=_pairwise_cost(0),
            estimate=lambda site: _pairwise_estimate(site.receiver()),
        ),
        function(
            "lists.range",
            (INT,),
            list_of(INT),
            _range,
            weigh=_as_long_as_result,
            estimate=_estimated_range,
        ),
    ]
