"""Mapping between schema keywords and the constraints of pydantic, msgspec and annotated-types.

Called by the source generators (``styles/``) to write constraints and by ``reading/annotations.py``
to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.kube.models.patterns import plain_pattern
from instar.kube.models.shapes import ModelShape, ShapeKind

_TEXT = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_SIZES = {
    ShapeKind.STRING: _TEXT,
    ShapeKind.LIST: {"minItems": "min_length", "maxItems": "max_length"},
    ShapeKind.MAP: {"minProperties": "min_length", "maxProperties": "max_length"},
    ShapeKind.FREE: {"minProperties": "min_length", "maxProperties": "max_length"},
}
_NUMBERS = {"multipleOf": "multiple_of"}
_LIMITS = {
    "minimum": ("ge", "gt", "exclusiveMinimum"),
    "maximum": ("le", "lt", "exclusiveMaximum"),
}


class Split(NamedTuple):
    """Keywords with a Python constraint, and the remaining keywords."""

    arguments: Object
    rest: Object
    """Keywords without a Python constraint."""


def split(shape: ModelShape, keywords: Mapping[str, Any]) -> Split:
    """Split keywords into Python constraint arguments and the rest."""
    arguments: Object = {}
    rest = dict(keywords)
    if isinstance(rest.get("description"), str):
        arguments["description"] = rest.pop("description")
    if shape.enum:
        return Split(arguments, rest)
    if shape.kind in (ShapeKind.INTEGER, ShapeKind.NUMBER):
        _take_limits(shape.kind, rest, arguments)
    for keyword, argument in (_SIZES.get(shape.kind) or {}).items():
        fits: Callable[[Any], bool] = _is_plain if keyword == "pattern" else _is_count
        if keyword in rest and fits(rest[keyword]):
            arguments[argument] = rest.pop(keyword)
    if shape.kind is ShapeKind.INTEGER and _is_count(rest.get("multipleOf")) and rest["multipleOf"]:
        arguments["multiple_of"] = rest.pop("multipleOf")
    return Split(arguments, rest)


def _take_limits(kind: ShapeKind, rest: Object, arguments: Object) -> None:
    for keyword, (inclusive, exclusive, flag) in _LIMITS.items():
        value = rest.get(keyword)
        wanted = int if kind is ShapeKind.INTEGER else (int, float)
        if isinstance(value, bool) or not isinstance(value, wanted):
            continue
        del rest[keyword]
        arguments[exclusive if rest.pop(flag, False) is True else inclusive] = value


def keywords_of(kind: ShapeKind, constraint: Any) -> Object:
    """Return the keywords of a constraint object of any library, by its attribute names."""
    found: Object = {}
    for keyword, (inclusive, exclusive, flag) in _LIMITS.items():
        for argument, strict in ((inclusive, False), (exclusive, True)):
            value = getattr(constraint, argument, None)
            if value is not None:
                found[keyword] = value
                if strict:
                    found[flag] = True
    sizes = {**(_SIZES.get(kind) or {}), **_NUMBERS}
    for keyword, argument in sizes.items():
        value = getattr(constraint, argument, None)
        if value is not None:
            found[keyword] = getattr(value, "pattern", value)
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and plain_pattern(value)
