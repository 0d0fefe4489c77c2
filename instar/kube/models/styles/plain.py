"""Generates the source of dataclasses and typed dicts, which need no library: schema keywords
become a ``Schema`` inside ``Annotated``.

Called by ``kube/models/modules.py``.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from instar.base.json_values import Object
from instar.kube.models.naming import ModelNaming, NamedClass
from instar.kube.models.shapes import PRESERVE, Frame, ModelShape, ShapeKind
from instar.kube.models.source_layout import (
    Expr,
    Join,
    LayoutGroup,
    call,
    lay_out,
    literal,
    subscript,
    text,
)
from instar.kube.models.styles.writing import (
    OBJECT_META,
    MemberSource,
    Style,
    class_variable,
    or_none,
    statement,
)
from instar.kube.models.to_schema import schema_of

_PRELUDE = '''class Schema:
    """Keywords of the schema that Python's types do not say, for ``Annotated``."""

    def __init__(self, keywords: dict[str, Any]) -> None:
        self.keywords = keywords'''


class Plain(Style):
    prelude: ClassVar[str] = _PRELUDE

    def carrier(self, shape: ModelShape, keywords: Object) -> Expr | None:
        if not keywords:
            return None
        self.use("Any")
        self.needs_prelude = True
        return LayoutGroup("Schema(", (literal(keywords),), ")")

    def metadata(self, frame: Frame) -> Expr:
        return self.annotated(OBJECT_META, ModelShape(ShapeKind.FREE), dict(frame.metadata))


class Dataclass(Plain):
    """An unset field is ``None``; the server applies defaults."""

    needs: ClassVar[Mapping[str, str]] = dict.fromkeys(("dataclass", "field"), "dataclasses")

    @staticmethod
    def shaped(shape: ModelShape) -> ModelShape:
        """Make an object that preserves unknown fields a dict, because a class would drop them."""
        members = shape.members
        if members is None or members.frame is None:
            return _preserving_as_dicts(shape)
        inner = tuple(
            replace(each, shape=_preserving_as_dicts(each.shape)) for each in members.members
        )
        return replace(shape, members=replace(members, members=inner))

    def head(self, named: NamedClass) -> list[str]:
        return [f"@{self.use('dataclass')}(kw_only=True, slots=True)", f"class {named.name}:"]

    def frame(self, frame: Frame) -> list[str]:
        lines: list[str] = []
        for name, (kind, value) in self.literal_frame(frame).items():
            lines += statement(name, kind, value)
        return [*lines, *statement("metadata", self.metadata(frame))]

    def tail(self, named: NamedClass) -> list[str]:
        found: list[str] = []
        if named.shape.keywords:
            found = ["", *class_variable(self, "__schema__", named.shape.keywords)]
        return [*found, *super().tail(named)]

    def field(self, named: NamedClass, place: MemberSource) -> list[str]:
        kind, value = self.optional(named, place)
        if place.attribute != place.name:
            arguments: dict[str, Expr] = {} if value is None else {"default": value}
            arguments["metadata"] = literal({"alias": place.name})
            value = call(self.use("field"), arguments)
        return statement(place.attribute, kind, value)

    def optional(self, named: NamedClass, place: MemberSource) -> tuple[Expr, Expr | None]:
        """Return the annotation and the default of a field."""
        kind, keywords = self.formatted(place.shape, dict(place.shape.keywords))
        kind = self.short(kind, named, place)
        if place.shape.nullable and not place.required:
            keywords["nullable"] = True
        absent = place.shape.nullable or not place.required
        kind = self.perhaps(kind, place.shape, keywords, absent)
        return kind, None if place.required else "None"

    def perhaps(self, kind: Expr, shape: ModelShape, keywords: Object, absent: bool) -> Expr:
        """Return the type with its keywords, and with ``None`` where it is allowed."""
        return self.annotated(or_none(kind) if absent else kind, shape, keywords)


class TypedDicts(Plain):
    """Keys may have any name, so there are no aliases; names invalid in a class body go into a
    base."""

    def __init__(self, naming: ModelNaming, crd: Mapping[str, Object]) -> None:
        super().__init__(naming, crd)
        self._schemas: Object = {}
        self._bases: dict[str, str] = {}

    def class_lines(self, named: NamedClass) -> list[str]:
        odd = [place for place in self.places(named) if _is_invalid_name(place)]
        before: list[str] = []
        if odd:
            base = self._bases[named.name] = f"_{named.name}Names"
            before = [*self._functional(base, named, odd).split("\n"), "", ""]
        if named.shape.keywords:
            self._schemas[named.name] = dict(named.shape.keywords)
        return before + super().class_lines(named)

    def head(self, named: NamedClass) -> list[str]:
        base = self._bases.get(named.name) or self.use("TypedDict")
        return [f"class {named.name}({base}):"]

    def frame(self, frame: Frame) -> list[str]:
        lines: list[str] = []
        for name, (kind, _) in self.literal_frame(frame).items():
            lines += statement(name, kind)
        return [*lines, *statement("metadata", self.metadata(frame))]

    def field(self, named: NamedClass, place: MemberSource) -> list[str]:
        if _is_invalid_name(place):
            return []
        return statement(place.name, self._kind(named, place))

    def tail(self, named: NamedClass) -> list[str]:
        return []

    def module_end(self) -> list[str]:
        """Return the attributes of all classes, which a typed dict cannot have itself."""
        kind = f": dict[str, dict[str, {self.use('Any')}]] = " if self._schemas or self.crd else ""
        found = (("__schema__", self._schemas), ("__crd__", self.crd))
        return [lay_out(Join((f"{name}{kind}", literal(value)))) for name, value in found if value]

    def _kind(self, named: NamedClass, place: MemberSource, extra: Object | None = None) -> Expr:
        keywords = {**place.shape.keywords, **(extra or {})}
        kind, keywords = self.formatted(place.shape, keywords)
        kind = self.short(kind, named, place)
        if place.shape.nullable:
            kind = or_none(kind)
        kind = self.annotated(kind, place.shape, keywords)
        return kind if place.required else subscript(self.use("NotRequired"), kind)

    def _functional(self, base: str, named: NamedClass, odd: list[MemberSource]) -> str:
        pairs = tuple(
            Join((f"{text(place.name)}: ", self._kind(named, place, _description_keyword(place))))
            for place in odd
        )
        arguments = (text(base), LayoutGroup("{", pairs, "}"))
        return lay_out(
            Join((f"{base} = ", LayoutGroup(f"{self.use('TypedDict')}(", arguments, ")")))
        )


def _preserving_as_dicts(shape: ModelShape) -> ModelShape:
    if shape.item is not None:
        return replace(shape, item=_preserving_as_dicts(shape.item))
    members = shape.members
    if members is None:
        return shape
    if members.keywords.get(PRESERVE) is not True:
        inner = tuple(
            replace(each, shape=_preserving_as_dicts(each.shape)) for each in members.members
        )
        return replace(shape, members=replace(members, members=inner))
    said = ("type", PRESERVE, "description", "nullable")
    keywords = {name: value for name, value in schema_of(shape).items() if name not in said}
    return ModelShape(ShapeKind.FREE, keywords=keywords, nullable=shape.nullable, doc=shape.doc)


def _is_invalid_name(place: MemberSource) -> bool:
    """Return whether the name is invalid in a class body."""
    legal = place.name.isidentifier() and not keyword.iskeyword(place.name)
    return not legal or place.name.startswith("__")


def _description_keyword(place: MemberSource) -> Object:
    return {"description": place.doc} if place.doc else {}
