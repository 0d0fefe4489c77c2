"""What a value looks like, between a schema and a Python type.

A ``ModelShape`` says what a Python type can say (its ``kind``, enum values, members) and keeps
every
other keyword of the schema beside it, so that nothing is lost on the way there or back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from instar.base.fast_dataclass import dataclass

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
FRAME = ("apiVersion", "kind", "metadata")
"""What every root object has; the server itself says what is in there."""


class ShapeKind(Enum):
    """What Python's types tell apart."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "array"
    MAP = "map"
    CLASS = "class"
    FREE = "free"
    """An object of any content."""
    INT_OR_STRING = "int-or-string"
    ANY = "any"


@dataclass(frozen=True, slots=True, eq=False)
class ModelShape:
    kind: ShapeKind
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Beyond what the kind implies; ``None`` takes back what it implies."""
    enum: tuple[str | int | bool, ...] = ()
    item: ModelShape | None = None
    """Of a list or a map."""
    members: ClassShape | None = None
    nullable: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ShapeMember:
    """A property: ``name`` as the object has it."""

    name: str
    shape: ModelShape
    required: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ClassShape:
    members: tuple[ShapeMember, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Of the object itself: rules, bounds of its size, a list of ``required`` that differs."""
    frame: Frame | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """What makes a class a root object."""

    api_version: str
    kind: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of ``metadata`` beyond being an object, such as a pattern of the name."""
