"""Optional values, and the first and last element of a list as one."""

from __future__ import annotations

from typing import Any

from instar.cel.equality import index
from instar.cel.functions import Overload, element_shape, function, method, same_shape
from instar.cel.types import BOOL, Type, list_of, optional_of, param
from instar.cel.values import (
    NONE,
    Duration,
    OptionalValue,
    Timestamp,
    is_list,
    is_map,
    size_of,
)

A = param("A")
_OPT = optional_of(A)


def _some(value: Any) -> OptionalValue:
    return OptionalValue(True, value)


def _is_zero(value: Any) -> bool:
    if is_list(value) or is_map(value):
        return size_of(value) == 0
    if isinstance(value, (Duration, Timestamp)):
        return value.nanos == 0
    return value is None or value in ("", b"", 0, False)


def _of_non_zero(value: Any) -> OptionalValue:
    return NONE if _is_zero(value) else _some(value)


def _unwrap(values: Any) -> list[Any]:
    return [item.content for item in values if item.present]


def _end(position: int) -> Any:
    def run(values: Any) -> OptionalValue:
        size = size_of(values)
        return _some(index(values, position % size)) if size else NONE

    return run


def overloads() -> list[Overload]:
    any_list, many = list_of(A), list_of(_OPT)
    return [
        function("optional.of", (A,), _OPT, _some, shape=same_shape),
        function("optional.none", (), _OPT, lambda: NONE),
        function("optional.ofNonZeroValue", (A,), _OPT, _of_non_zero, shape=same_shape),
        function(
            "optional.unwrap", (many,), any_list, _unwrap, work=lambda n: 1 + n, shape=same_shape
        ),
        method("unwrapOpt", (many,), any_list, _unwrap, work=lambda n: 1 + n, shape=same_shape),
        method("hasValue", (_OPT,), BOOL, lambda o: o.present),
        method("value", (_OPT,), A, lambda o: o.value(), shape=same_shape),
        method(
            "or", (_OPT, _OPT), _OPT, lambda o, other: o if o.present else other, shape=same_shape
        ),
        method(
            "orValue",
            (_OPT, A),
            A,
            lambda o, other: o.content if o.present else other,
            shape=same_shape,
        ),
        method("first", (any_list,), _OPT, _end(0), shape=element_shape),
        method("last", (any_list,), _OPT, _end(-1), shape=element_shape),
    ]


def type_names() -> list[tuple[str, Type]]:
    return [("optional_type", optional_of(param("A")))]
