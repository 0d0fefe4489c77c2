"""Relaxes generated Python models for converters (``instar types --partial``): no field is
required and no value is checked.

``modules.py`` calls it. Server-side apply converts partial objects, and old objects may violate
newer bounds; validation is left to the server.
"""

from __future__ import annotations

from dataclasses import replace

from instar.kube.models.shapes import PRESERVE, ClassShape, ModelShape, ShapeMember


def part_of(shape: ModelShape) -> ModelShape:
    """Return the same types and names, without anything that could reject a value."""
    kept = {name: value for name, value in shape.keywords.items() if name == "format"}
    return replace(
        shape,
        keywords=kept,
        enum=(),
        item=None if shape.item is None else part_of(shape.item),
        members=None if shape.members is None else _part_of_class(shape.members),
    )


def _part_of_class(members: ClassShape) -> ClassShape:
    return replace(
        members,
        members=tuple(ShapeMember(each.name, part_of(each.shape)) for each in members.members),
        keywords={name: value for name, value in members.keywords.items() if name == PRESERVE},
        frame=None if members.frame is None else replace(members.frame, metadata={}),
    )
