"""CEL optional values, and the first and last element of a list as optionals.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

from typing import Any

from instar.kube.cel.equality import index
from instar.kube.cel.functions import Overload, function, method
from instar.kube.cel.time_text import FIRST_SECOND, SECOND
from instar.kube.cel.types import BOOL, Type, list_of, optional_of, param
from instar.kube.cel.values import (
    NONE,
    Duration,
    OptionalValue,
    StructValue,
    Timestamp,
    Uint,
    size_of,
)

_PRIMITIVE_TYPES = (str, bytes, int, Uint, float, bool)

A = param("A")
_OPT = optional_of(A)


def _some(value: Any) -> OptionalValue:
    return OptionalValue(True, value)


def _is_zero(value: Any) -> bool:
    """Return whether a value is its type's zero value; lists and maps of an object never are,
    only those built by the expression."""
    if type(value) is list or type(value) is dict:
        return not value
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Timestamp):
        return value.nanos == FIRST_SECOND * SECOND
    if type(value) is StructValue:
        return not value.fields
    return value is None or (type(value) in _PRIMITIVE_TYPES and not value)


def _of_non_zero(value: Any) -> OptionalValue:
    return NONE if _is_zero(value) else _some(value)


def _unwrap(values: Any) -> list[Any]:
    return [item.content for item in values if item.present]


def _raise_not_evaluated(*_values: Any) -> Any:
    raise AssertionError("the interpreter evaluates the second argument only where it is needed")


def _end(position: int) -> Any:
    def run(values: Any) -> OptionalValue:
        size = size_of(values)
        return _some(index(values, position % size)) if size else NONE

    return run


def overloads() -> list[Overload]:
    any_list, many = list_of(A), list_of(_OPT)
    return [
        function("optional.of", (A,), _OPT, _some),
        function("optional.none", (), _OPT, lambda: NONE),
        function("optional.ofNonZeroValue", (A,), _OPT, _of_non_zero),
        function("optional.unwrap", (many,), any_list, _unwrap),
        method("unwrapOpt", (many,), any_list, _unwrap),
        method("hasValue", (_OPT,), BOOL, lambda optional: optional.present),
        method("value", (_OPT,), A, OptionalValue.value),
        method("or", (_OPT, _OPT), _OPT, _raise_not_evaluated),
        method("orValue", (_OPT, A), A, _raise_not_evaluated),
        method("first", (any_list,), _OPT, _end(0)),
        method("last", (any_list,), _OPT, _end(-1)),
    ]


def type_names() -> list[tuple[str, Type]]:
    return [("optional_type", optional_of(param("A")))]
