"""Generates the source of pydantic models: bounds and defaults become ``Field`` arguments, other
schema keywords its ``json_schema_extra``.

Called by ``kube/models/modules.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from instar.base.json_values import Object
from instar.kube.models.bounds import split
from instar.kube.models.naming import NamedClass
from instar.kube.models.shapes import PRESERVE, Frame, ModelShape, ShapeKind
from instar.kube.models.source_layout import Expr, Join, LayoutGroup, call, literal, text
from instar.kube.models.styles.writing import (
    OBJECT_META,
    MemberSource,
    Style,
    assignment,
    or_none,
    statement,
)


class Pydantic(Style):
    needs: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("BaseModel", "ConfigDict", "Field"), "pydantic"
    )
    taken: ClassVar[frozenset[str]] = frozenset(
        {"construct", "copy", "dict", "fields", "from_orm", "json", "parse_file", "parse_obj"}
        | {"parse_raw", "schema", "schema_json", "update_forward_refs", "validate"}
    )
    barred: ClassVar[str] = "model_"

    def carrier(self, shape: ModelShape, keywords: Object) -> Expr | None:
        arguments = self._arguments(shape, keywords)
        return call(self.use("Field"), arguments) if arguments else None

    def head(self, named: NamedClass) -> list[str]:
        return [f"class {named.name}({self.use('BaseModel')}):"]

    def config(self, named: NamedClass, places: list[MemberSource]) -> list[str]:
        config = self._config(named, places)
        if not config:
            return []
        value = call(self.use("ConfigDict"), config)
        return [*assignment("model_config", value), ""]

    def _config(self, named: NamedClass, places: list[MemberSource]) -> dict[str, Expr]:
        config: dict[str, Expr] = {}
        keywords = named.shape.keywords
        if keywords.get(PRESERVE) is True:
            config["extra"] = literal("allow")
        if any(place.attribute != place.name for place in places):
            config["populate_by_name"] = "True"
        if keywords:
            config["json_schema_extra"] = literal(keywords)
        return config

    def frame(self, frame: Frame) -> list[str]:
        lines: list[str] = []
        for name, (kind, value) in self.literal_frame(frame).items():
            lines += statement(name, kind, value)
        extra = None
        if frame.metadata:
            extra = call(self.use("Field"), {"json_schema_extra": literal(frame.metadata)})
        return [*lines, *statement("metadata", OBJECT_META, extra)]

    def field(self, named: NamedClass, place: MemberSource) -> list[str]:
        shape = place.shape
        keywords = dict(shape.keywords)
        default = keywords.pop("default", None)
        kind, keywords = self.formatted(shape, keywords)
        kind = self.short(kind, named, place)
        arguments: dict[str, Expr] = {}
        if default is not None:
            arguments.update(self._default(shape, default))
        elif not place.required:
            arguments["default"] = "None"
        if shape.nullable or arguments.get("default") == "None":
            kind = or_none(kind)
        if shape.nullable and not place.required:
            keywords["nullable"] = True
        if place.attribute != place.name:
            arguments["alias"] = literal(place.name)
        arguments.update(self._arguments(shape, keywords))
        if not arguments:
            return statement(place.attribute, kind)
        if set(arguments) == {"default"}:
            return statement(place.attribute, kind, arguments["default"])
        return statement(place.attribute, kind, call(self.use("Field"), arguments))

    def _default(self, shape: ModelShape, value: object) -> dict[str, Expr]:
        """Return the default; mutable values use a factory."""
        if isinstance(value, dict | list):
            return {"default_factory": Join(("lambda: ", self._made(shape, value)))}
        return {"default": literal(value)}

    def _made(self, shape: ModelShape, value: object) -> Expr:
        """Return a value, with model instances where the type has models."""
        if shape.kind is ShapeKind.CLASS and isinstance(value, dict):
            name = self.naming.name(shape)
            return LayoutGroup(f"{name}.model_validate(", (literal(value),), ")")
        if shape.item is not None and isinstance(value, list):
            return LayoutGroup("[", tuple(self._made(shape.item, each) for each in value), "]")
        if shape.item is not None and isinstance(value, dict):
            pairs = ((text(name), self._made(shape.item, each)) for name, each in value.items())
            return LayoutGroup("{", tuple(Join((f"{name}: ", made)) for name, made in pairs), "}")
        return literal(value)

    def _arguments(self, shape: ModelShape, keywords: Object) -> dict[str, Expr]:
        found = split(shape, keywords)
        arguments = {name: literal(value) for name, value in found.arguments.items()}
        if found.rest:
            arguments["json_schema_extra"] = literal(found.rest)
        return arguments
