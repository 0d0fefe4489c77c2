"""The lists extension, version 3: slice, flatten, sort, sortBy, reverse, distinct, range."""

from __future__ import annotations

from typing import Any

from instar.cel.equality import freeze
from instar.cel.functions import (
    UNBOUNDED,
    Overload,
    Shape,
    function,
    method,
    per_element,
    same_shape,
)
from instar.cel.library.lists import BY_ORDER
from instar.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    param,
)
from instar.cel.values import CelError, as_list, is_list

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
        raise CelError("range too large")
    return list(range(count))


def _flat_shape(values: Shape, _depth: Shape | None = None) -> Shape:
    inner = values.element or Shape(1)
    return Shape(values.size * max(inner.size, 1), inner.element or inner)


def overloads() -> list[Overload]:
    any_list = list_of(A)
    sorts = [
        method(
            "sort",
            (list_of(of),),
            list_of(of),
            _sort,
            work=per_element,
            traverses=True,
            shape=same_shape,
        )
        for of in _SORTABLE
    ]
    keyed = [
        method(
            "@sortByAssociatedKeys",
            (any_list, list_of(of)),
            any_list,
            _sort_by_keys,
            work=per_element,
            traverses=True,
            shape=same_shape,
        )
        for of in _SORTABLE
    ]
    return [
        *sorts,
        *keyed,
        method("slice", (any_list, INT, INT), any_list, _slice, work=per_element, shape=same_shape),
        method(
            "flatten", (list_of(any_list),), any_list, _flatten, work=per_element, shape=_flat_shape
        ),
        method(
            "flatten",
            (list_of(DYN), INT),
            list_of(DYN),
            _flatten,
            work=per_element,
            traverses=True,
            shape=_flat_shape,
        ),
        method(
            "reverse",
            (any_list,),
            any_list,
            lambda v: as_list(v)[::-1],
            work=per_element,
            shape=same_shape,
        ),
        method(
            "distinct",
            (any_list,),
            any_list,
            _distinct,
            work=per_element,
            traverses=True,
            shape=same_shape,
        ),
        function(
            "lists.range",
            (INT,),
            list_of(INT),
            _range,
            work=lambda _n: 10,
            shape=lambda _n: Shape(UNBOUNDED),
        ),
    ]
