"""Calls whose argument types are known only at run time: which overload fits these values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from instar.cel.functions import Overload
from instar.cel.types import Kind, Type
from instar.cel.values import (
    Duration,
    ListValue,
    MapValue,
    ObjectValue,
    Opaque,
    OptionalValue,
    Timestamp,
    TypeValue,
    Uint,
)

Fits = Callable[[Any], bool]

_EXACT: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "duration": Duration,
    "timestamp": Timestamp,
    "optional_type": OptionalValue,
}


def certain(params: Sequence[Type], actual: Sequence[Type]) -> bool:
    """The checker proved that values of ``actual`` always fit ``params``."""
    return all(_certain(p, a) for p, a in zip(params, actual, strict=True))


def _certain(expected: Type, actual: Type) -> bool:
    if expected.kind in (Kind.PARAM, Kind.DYN):
        return True
    if actual.kind in (Kind.DYN, Kind.ERROR, Kind.NULL):
        return False
    return all(_certain(e, a) for e, a in zip(expected.params, actual.params, strict=True))


def choose(candidates: Sequence[Overload]) -> Callable[[Sequence[Any]], Overload | None]:
    guarded = [(tuple(_fits(each) for each in c.params), c) for c in candidates]

    def pick(values: Sequence[Any]) -> Overload | None:
        for guards, overload in guarded:
            if all(fits(value) for fits, value in zip(guards, values, strict=True)):
                return overload
        return None

    return pick


def _fits(expected: Type) -> Fits:
    match expected.kind:
        case Kind.PARAM | Kind.DYN:
            return lambda _value: True
        case Kind.NULL:
            return lambda value: value is None
        case Kind.TYPE:
            return lambda value: type(value) is TypeValue
        case Kind.LIST:
            return _list_fits(_fits(expected.params[0]))
        case Kind.MAP:
            return lambda value: type(value) in (dict, MapValue)
        case Kind.OBJECT:
            return lambda value: type(value) is ObjectValue
    exact = _EXACT.get(expected.name)
    if exact is not None:
        return lambda value: type(value) is exact
    name = expected.name
    return lambda value: isinstance(value, Opaque) and value.cel_type == name


def _list_fits(element: Fits) -> Fits:
    return lambda value: type(value) in (list, ListValue) and all(map(element, value))
