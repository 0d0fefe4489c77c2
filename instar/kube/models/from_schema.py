"""Converts a structural schema to a ``ModelShape``.

Called by ``crd_models.py`` for ``instar types``, and by ``objectmeta.py``. Works for every schema,
valid or not; keywords that no Python type expresses are kept in the shape's ``keywords``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from instar.base.json_values import Object, same_json
from instar.kube.models.shapes import (
    FRAME,
    INT_OR_STRING,
    PRESERVE,
    ClassShape,
    Frame,
    ModelShape,
    ShapeKind,
    ShapeMember,
)
from instar.kube.models.to_schema import implied_keywords, required_names

_SCALARS = {
    "string": ShapeKind.STRING,
    "integer": ShapeKind.INTEGER,
    "number": ShapeKind.NUMBER,
    "boolean": ShapeKind.BOOLEAN,
}
_IN_PYTHON = {ShapeKind.STRING: str, ShapeKind.INTEGER: int, ShapeKind.BOOLEAN: bool}


def root_shape(schema: Mapping[str, Any], *, api_version: str, kind: str) -> ModelShape:
    """Return the shape of a version's whole object: always a class, with apiVersion, kind and
    metadata."""
    properties = _mapping(schema.get("properties"))
    metadata = {
        name: value
        for name, value in _mapping(properties.get("metadata")).items()
        if name != "description" and (name, value) != ("type", "object")
    }
    inner = {name: value for name, value in properties.items() if name not in FRAME}
    shape = _class({**schema, "type": "object", "properties": inner})
    assert shape.members is not None
    frame = Frame(api_version, kind, metadata)
    return replace(shape, members=replace(shape.members, frame=frame))


def shape_of(raw: Mapping[str, Any]) -> ModelShape:
    """Return the shape of a schema node."""
    kind = _kind(raw)
    if kind is ShapeKind.CLASS:
        return _class(raw)
    item = {ShapeKind.LIST: raw.get("items"), ShapeKind.MAP: raw.get("additionalProperties")}.get(
        kind
    )
    shape = ModelShape(
        kind,
        enum=_enum(kind, raw),
        item=shape_of(item) if isinstance(item, Mapping) else None,
        nullable=raw.get("nullable") is True,
        doc=_text(raw.get("description")),
    )
    held = set() if shape.item is None else {"items", "additionalProperties"}
    return replace(shape, keywords=_additional_keywords(raw, implied_keywords(shape), held))


def _class(raw: Mapping[str, Any]) -> ModelShape:
    """Return a class with the object's own keywords; a default belongs to the field."""
    needed = raw.get("required")
    names = [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
    members = tuple(
        _member(str(name), child if isinstance(child, Mapping) else {}, name in names)
        for name, child in _mapping(raw.get("properties")).items()
    )
    found = ClassShape(members)
    as_said: Object = {"type": "object"}
    if set(required_names(found)) == set(names):
        as_said["required"] = needed
    beyond = _additional_keywords(raw, as_said, {"properties"})
    if names == [] and not needed:
        beyond.pop("required", None)
    place = {name: beyond.pop(name) for name in ("default",) if name in beyond}
    return ModelShape(
        ShapeKind.CLASS,
        keywords=place,
        members=replace(found, keywords=beyond),
        nullable=raw.get("nullable") is True,
        doc=_text(raw.get("description")),
    )


def _member(name: str, raw: Mapping[str, Any], needed: bool) -> ShapeMember:
    """Return a member; one with a default is optional even if it is in ``required``."""
    return ShapeMember(name, shape_of(raw), needed and "default" not in raw)


def _additional_keywords(
    raw: Mapping[str, Any], stated: Mapping[str, Any], held: set[str]
) -> Object:
    """Return the keywords of ``raw`` that ``stated`` lacks, and None for each that only ``stated``
    has."""
    known = {"description", "nullable"} | held
    beyond = {
        name: value
        for name, value in raw.items()
        if name not in known and not (name in stated and same_json(stated[name], value))
    }
    beyond |= {name: _absent(name) for name in stated if name not in raw}
    return beyond


def _absent(name: str) -> bool | None:
    return False if name == PRESERVE else None


def _kind(raw: Mapping[str, Any]) -> ShapeKind:
    given = raw.get("type") or ""
    if raw.get(INT_OR_STRING) is True:
        return ShapeKind.INT_OR_STRING
    if given == "array" and isinstance(raw.get("items"), Mapping):
        return ShapeKind.LIST
    if given == "object":
        if _mapping(raw.get("properties")):
            return ShapeKind.CLASS
        return (
            ShapeKind.MAP
            if isinstance(raw.get("additionalProperties"), Mapping)
            else ShapeKind.FREE
        )
    return _SCALARS.get(given, ShapeKind.ANY) if isinstance(given, str) else ShapeKind.ANY


def _enum(kind: ShapeKind, raw: Mapping[str, Any]) -> tuple[str | int | bool, ...]:
    """Return the values that ``Literal`` can express; ``True`` is not an integer."""
    wanted, values = _IN_PYTHON.get(kind), raw.get("enum")
    if wanted is None or not isinstance(values, list):
        return ()
    return tuple(values) if all(type(value) is wanted for value in values) else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
