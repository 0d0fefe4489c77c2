"""``ModelShape``: the intermediate form between a schema and a Python type.

Used by all of ``kube/models``. A shape has what a Python type can express (kind, enum values,
members) and keeps all other keywords of the schema, so that nothing is lost in either direction.
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
"""Fields of every root object; the server defines their content."""


class ShapeKind(Enum):
    """The kinds of types that Python distinguishes."""

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
    """Keywords beyond those that the kind implies; ``None`` removes an implied one."""
    enum: tuple[str | int | bool, ...] = ()
    item: ModelShape | None = None
    """Item type of a list or a map."""
    members: ClassShape | None = None
    nullable: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ShapeMember:
    """A property; ``name`` is the name in the object."""

    name: str
    shape: ModelShape
    required: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ClassShape:
    members: tuple[ShapeMember, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of the object itself: rules, size bounds, a different ``required`` list."""
    frame: Frame | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """apiVersion, kind and metadata, which make a class a root object."""

    api_version: str
    kind: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of ``metadata``, such as a pattern of the name."""
