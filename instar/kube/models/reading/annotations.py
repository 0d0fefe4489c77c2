"""Converts the type annotations of a class to ``ModelShape``, the intermediate form of a schema.

Called by ``roots.py``.
"""

from __future__ import annotations

import collections.abc
import datetime
import enum
import types
import typing
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from instar.base.json_values import Object
from instar.kube.models.bounds import keywords_of
from instar.kube.models.errors import ModelError
from instar.kube.models.reading.docstrings import ModelDescriptions, descriptions_of
from instar.kube.models.reading.fields import ModelField, class_keywords, fields_of, is_model
from instar.kube.models.shapes import ClassShape, ModelShape, ShapeKind, ShapeMember

_SCALARS: dict[Any, tuple[ShapeKind, Object]] = {
    str: (ShapeKind.STRING, {}),
    int: (ShapeKind.INTEGER, {}),
    float: (ShapeKind.NUMBER, {}),
    bool: (ShapeKind.BOOLEAN, {}),
    bytes: (ShapeKind.STRING, {"format": "byte"}),
    datetime.datetime: (ShapeKind.STRING, {"format": "date-time"}),
    datetime.date: (ShapeKind.STRING, {"format": "date"}),
    datetime.timedelta: (ShapeKind.STRING, {"format": "duration"}),
    uuid.UUID: (ShapeKind.STRING, {"format": "uuid"}),
    dict: (ShapeKind.FREE, {}),
    Any: (ShapeKind.ANY, {}),
    object: (ShapeKind.ANY, {}),
}
_BY_VALUE = {str: ShapeKind.STRING, bool: ShapeKind.BOOLEAN, int: ShapeKind.INTEGER}
_UNIONS: dict[frozenset[Any], ShapeKind] = {
    frozenset({int, str}): ShapeKind.INT_OR_STRING,
    frozenset({int, float}): ShapeKind.NUMBER,
}
_LISTS = (list, tuple, collections.abc.Sequence, set, frozenset)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_UNSET = "UnsetType"


class Reader:
    """Reads classes, each once."""

    def __init__(self) -> None:
        self._classes: dict[type[Any], ClassShape] = {}
        self._open: list[type[Any]] = []

    def class_shape(self, cls: type[Any], skipping: Iterable[str] = ()) -> ClassShape:
        if cls in self._open:
            chain = " → ".join(each.__name__ for each in [*self._open, cls])
            raise ModelError(f"{chain}: a class within itself, which no structural schema can say")
        if cls not in self._classes:
            self._open.append(cls)
            words = descriptions_of(cls)
            members = tuple(
                self._member(cls, field, words)
                for field in fields_of(cls)
                if field.name not in skipping
            )
            self._open.pop()
            self._classes[cls] = ClassShape(members, class_keywords(cls))
        return self._classes[cls]

    def _member(self, cls: type[Any], field: ModelField, words: ModelDescriptions) -> ShapeMember:
        where = f"{cls.__name__}.{field.attribute}"
        shape = self.shape(field.annotation, where)
        marked = shape.nullable and _is_marked_nullable(field.annotation)
        if not field.required and field.default is None and not typing.is_typeddict(cls):
            # ``X | None = None`` is Python's form of an optional field.
            shape = replace(shape, nullable=marked)
        for item in field.carried:
            shape = _with_annotated_keywords(shape, item)
        if field.default is not None:
            shape = replace(shape, keywords={**shape.keywords, "default": field.default})
        doc = words.fields.get(field.attribute)
        return ShapeMember(field.name, replace(shape, doc=doc) if doc else shape, field.required)

    def shape(self, annotation: Any, where: str) -> ModelShape:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            inner, *carried = typing.get_args(annotation)
            shape = self.shape(inner, where)
            for item in carried:
                shape = _with_annotated_keywords(shape, item)
            return shape
        if origin in (typing.Union, types.UnionType):
            return self._union(typing.get_args(annotation), where)
        if origin is typing.Literal:
            return _literal(typing.get_args(annotation), where)
        if origin is not None and isinstance(origin, type):
            return self._container(origin, typing.get_args(annotation), where)
        return self._plain(annotation, where)

    def _plain(self, annotation: Any, where: str) -> ModelShape:
        for further in ("__supertype__", "__value__"):  # NewType; ``type X = …``
            if hasattr(annotation, further):
                return self.shape(getattr(annotation, further), where)
        if is_model(annotation):
            doc = descriptions_of(annotation).doc
            return ModelShape(ShapeKind.CLASS, members=self.class_shape(annotation), doc=doc)
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            return _literal([each.value for each in annotation], where)
        try:
            kind, keywords = _SCALARS[annotation]
        except (KeyError, TypeError):
            shown = getattr(annotation, "__name__", None) or str(annotation)
            raise ModelError(f"{where}: a schema cannot say {shown}") from None
        return ModelShape(kind, keywords=dict(keywords))

    def _union(self, choices: tuple[Any, ...], where: str) -> ModelShape:
        nothing = type(None)
        left = [
            each
            for each in choices
            if each is not nothing and getattr(each, "__name__", "") != _UNSET
        ]
        nullable = nothing in choices
        if len(left) == 1:
            shape = self.shape(left[0], where)
            return replace(shape, nullable=shape.nullable or nullable)
        plain = frozenset(each for each in left if isinstance(each, type))
        kind = _UNIONS.get(plain) if len(plain) == len(left) else None
        if kind is None:
            shown = " | ".join(getattr(each, "__name__", str(each)) for each in left)
            raise ModelError(f"{where}: a structural schema cannot say {shown}")
        return ModelShape(kind, nullable=nullable)

    def _container(self, origin: type[Any], arguments: tuple[Any, ...], where: str) -> ModelShape:
        if issubclass(origin, _MAPS):
            if arguments[1:] in ((), (Any,), (object,)):
                return ModelShape(ShapeKind.FREE)
            return ModelShape(ShapeKind.MAP, item=self.shape(arguments[1], where))
        if issubclass(origin, _LISTS) and len(set(arguments) - {Ellipsis}) == 1:
            once = issubclass(origin, set | frozenset)
            keywords = {"x-kubernetes-list-type": "set"} if once else {}
            return ModelShape(ShapeKind.LIST, keywords, item=self.shape(arguments[0], where))
        raise ModelError(f"{where}: a schema cannot say {origin.__name__}")


def _literal(values: Iterable[Any], where: str) -> ModelShape:
    given = list(values)
    left = [value for value in given if value is not None]
    kinds = {_BY_VALUE.get(type(value)) for value in left}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        raise ModelError(f"{where}: values of one kind are needed: strings, integers or booleans")
    return ModelShape(kind, enum=tuple(left), nullable=len(left) < len(given))


def _is_marked_nullable(annotation: Any) -> bool:
    """Return whether nullable is stated explicitly, not only by ``None``."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return any(map(_is_marked_nullable, typing.get_args(annotation)))
    if typing.get_origin(annotation) is not typing.Annotated:
        return False
    return any(extra_of(item).get("nullable") is True for item in typing.get_args(annotation)[1:])


def _with_annotated_keywords(shape: ModelShape, item: Any) -> ModelShape:
    """Return the shape with the keywords of an object inside ``Annotated``, of any library."""
    for each in getattr(item, "metadata", None) or ():
        shape = _with_annotated_keywords(shape, each)
    keywords = {**shape.keywords, **keywords_of(shape.kind, item), **extra_of(item)}
    doc = keywords.pop("description", None) or getattr(item, "description", None) or shape.doc
    doc = getattr(item, "documentation", None) or doc
    nullable = bool(keywords.pop("nullable", shape.nullable))
    return replace(shape, keywords=keywords, doc=str(doc), nullable=nullable)


def extra_of(item: Any) -> Mapping[str, Any]:
    """Return the keywords that a library's field object carries."""
    if isinstance(item, Mapping):
        return item
    for name in ("keywords", "json_schema_extra", "extra_json_schema"):
        found = getattr(item, name, None)
        if isinstance(found, Mapping):
            return found
    return {}
