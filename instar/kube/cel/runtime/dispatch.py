"""Run-time overload selection for calls with dynamic argument types.

Called by ``calls.py`` and ``compiled.py``; also builds upstream's "no such overload" errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from instar.kube.cel.functions import Overload
from instar.kube.cel.types import CelKind, Type
from instar.kube.cel.values import (
    Duration,
    ListValue,
    MapValue,
    MessageFields,
    NoSuchOverload,
    ObjectValue,
    Opaque,
    OptionalValue,
    Timestamp,
    TypeValue,
    Uint,
    is_list,
    type_name,
)

Fits = Callable[[Any], bool]
Pick = Callable[[Sequence[Any]], Overload | None]

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
_TIMES = ("google.protobuf.Duration", "google.protobuf.Timestamp")
_NUMBERS = ("int", "uint", "double")
_ORDERED = (*_NUMBERS, *_TIMES, "bool", "string", "bytes")
_TRAITS: dict[str, tuple[str, ...]] = {
    "_+_": (*_NUMBERS, *_TIMES, "string", "bytes", "list"),
    "_-_": (*_NUMBERS, *_TIMES),
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": ("int", "uint"),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ORDERED),
    "-_": (),
    "!_": (),
    "size": (),
    "matches": ("string",),
}
"""Functions that upstream dispatches on the first value only; all others on all types."""
_NAMELESS = ("contains", "startsWith", "endsWith", "@in")


def misfit(name: str, values: Sequence[Any]) -> NoSuchOverload:
    """Return the error of a call that fits no overload."""
    kinds = [type_name(value) for value in values]
    if name in _NAMELESS or kinds[0] in _TRAITS.get(name, ()):
        return NoSuchOverload()
    if name in _TRAITS:
        return NoSuchOverload(f"no such overload: {name}")
    return NoSuchOverload(f"no such overload: {name}({', '.join(kinds)})")


def certain(params: Sequence[Type], actual: Sequence[Type]) -> bool:
    """Return whether the checker proved that values of ``actual`` always fit ``params``."""
    return params == actual or all(_certain(p, a) for p, a in zip(params, actual, strict=True))


def _certain(expected: Type, actual: Type) -> bool:
    if expected.kind in (CelKind.PARAM, CelKind.DYN):
        return True
    if actual.kind in (CelKind.DYN, CelKind.ERROR, CelKind.NULL):
        return False
    return all(_certain(e, a) for e, a in zip(expected.params, actual.params, strict=True))


def choose(candidates: Sequence[Overload]) -> Pick:
    guarded = [(tuple(_fits(each) for each in c.params), c) for c in candidates]

    def pick(values: Sequence[Any]) -> Overload | None:
        for guards, overload in guarded:
            if all(fits(value) for fits, value in zip(guards, values, strict=True)):
                return overload
        return None

    return pick


def _fits(expected: Type) -> Fits:
    match expected.kind:
        case CelKind.PARAM | CelKind.DYN:
            return lambda _value: True
        case CelKind.NULL:
            return lambda value: value is None
        case CelKind.TYPE:
            return lambda value: type(value) is TypeValue
        case CelKind.LIST if expected.params[0].kind is CelKind.LIST:
            return is_list
        case CelKind.LIST:
            return _list_fits(_fits(expected.params[0]))
        case CelKind.MAP:
            return lambda value: type(value) in (dict, MapValue, ObjectValue)
    exact = _EXACT.get(expected.name)
    if exact is not None:
        return lambda value: type(value) is exact
    name = expected.name
    return lambda value: isinstance(value, Opaque | MessageFields) and value.cel_type == name


def _list_fits(element: Fits) -> Fits:
    """Check the element type; upstream looks at the first element only."""

    def fits(value: Any) -> bool:
        if type(value) is list:
            return not value or element(value[0])
        if type(value) is not ListValue:
            return False
        return not value.raw or element(value.declared.convert_element(value.raw[0]))

    return fits
