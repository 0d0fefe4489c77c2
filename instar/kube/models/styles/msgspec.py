"""Generates the source of msgspec structs: bounds become ``Meta`` arguments, other schema keywords
its ``extra_json_schema``.

Called by ``kube/models/modules.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from instar.base.json_values import Object
from instar.kube.models.bounds import split
from instar.kube.models.naming import NamedClass
from instar.kube.models.shapes import Frame, ModelShape
from instar.kube.models.source_layout import Expr, LayoutGroup, call, lay_out, literal
from instar.kube.models.styles.plain import Dataclass
from instar.kube.models.styles.writing import MemberSource, or_none, statement


class Msgspec(Dataclass):
    """Like a dataclass: an unset field is ``None`` and is left out when encoded."""

    needs: ClassVar[Mapping[str, str]] = dict.fromkeys(("Meta", "Struct", "field"), "msgspec")

    def carrier(self, shape: ModelShape, keywords: Object) -> Expr | None:
        if not keywords:
            return None
        found = split(shape, keywords)
        arguments = {name: literal(value) for name, value in found.arguments.items()}
        if found.rest:
            arguments["extra_json_schema"] = literal(found.rest)
        return call(self.use("Meta"), arguments)

    def perhaps(self, kind: Expr, shape: ModelShape, keywords: Object, absent: bool) -> Expr:
        """Return the annotated type; bounds apply to the type alone, because msgspec rejects
        them on ``list[…] | None``."""
        kind = self.annotated(kind, shape, keywords)
        return or_none(kind) if absent else kind

    def head(self, named: NamedClass) -> list[str]:
        bases = (self.use("Struct"), "kw_only=True", "omit_defaults=True")
        return lay_out(LayoutGroup(f"class {named.name}(", bases, "):")).split("\n")

    def frame(self, frame: Frame) -> list[str]:
        lines: list[str] = []
        for name, (kind, value) in self.literal_frame(frame).items():
            # A factory, because a plain default would be left out when the object is encoded.
            made = call(self.use("field"), {"default_factory": f"lambda: {value}"})
            lines += statement(name, kind, made)
        return [*lines, *statement("metadata", self.metadata(frame))]

    def field(self, named: NamedClass, place: MemberSource) -> list[str]:
        kind, value = self.optional(named, place)
        if place.attribute != place.name:
            arguments: dict[str, Expr] = {"name": literal(place.name)}
            if value is not None:
                arguments["default"] = value
            value = call(self.use("field"), arguments)
        return statement(place.attribute, kind, value)
