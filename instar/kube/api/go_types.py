"""Model of Go types as JSON decoding sees them: which values a field takes and when it is encoded
(like ``omitempty``).

``crd_types.py`` describes the CRD type with it; ``crd_decode.py`` decodes objects by it.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum, auto
from functools import cached_property

from instar.base.fast_dataclass import dataclass


class Emit(Enum):
    """When a field appears in the output."""

    ALWAYS = auto()
    """Also when empty; a list or a map is then ``null``."""
    FILLED = auto()
    """Only when it is not the zero value."""
    PRESENT = auto()
    """Whenever it was given, zero or not (a Go pointer)."""


class ScalarForm(Enum):
    """Which JSON values a scalar takes."""

    STRING = "string"
    BOOL = "bool"
    INTEGER = "integer"
    FLOAT = "float"
    BYTES = "bytes"
    TIME = "time"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Scalar:
    form: ScalarForm
    go: str


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Type

    @property
    def go(self) -> str:
        return f"[]{self.item.go}"


@dataclass(frozen=True, slots=True)
class MapOf:
    item: Type

    @property
    def go(self) -> str:
        return f"map[string]{self.item.go}"


@dataclass(frozen=True, eq=False)
class Struct:
    """A Go struct; ``name`` as Go prints it in an error, ``go`` with its package."""

    name: str
    package: str
    fields: dict[str, GoField] = field(default_factory=dict)

    @property
    def go(self) -> str:
        return f"{self.package}.{self.name}"

    @cached_property
    def always(self) -> tuple[tuple[str, Type], ...]:
        """Return the fields that are always printed."""
        found = self.fields.items()
        return tuple((name, each.type) for name, each in found if each.emit is Emit.ALWAYS)


class UnionKind(Enum):
    SCHEMA_OR_ARRAY = auto()
    SCHEMA_OR_BOOL = auto()
    SCHEMA_OR_STRINGS = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """A JSON value that may be a schema or something simpler (bool, list), decoded by its own
    rules."""

    kind: UnionKind
    schema: Struct
    go: str = ""


Type = Scalar | ListOf | MapOf | Struct | Union


@dataclass(frozen=True, slots=True)
class GoField:
    type: Type
    emit: Emit


STRING = Scalar(ScalarForm.STRING, "string")
BOOL = Scalar(ScalarForm.BOOL, "bool")
INT32 = Scalar(ScalarForm.INTEGER, "int32")
INT64 = Scalar(ScalarForm.INTEGER, "int64")
FLOAT = Scalar(ScalarForm.FLOAT, "float64")
BYTES = Scalar(ScalarForm.BYTES, "[]uint8")
TIME = Scalar(ScalarForm.TIME, "string")
JSON = Scalar(ScalarForm.ANY, "v1.JSON")
STRINGS = ListOf(STRING)


def always(type: Type) -> GoField:
    """Return a field that is written even if it is empty."""
    return GoField(type, Emit.ALWAYS)


def filled(type: Type) -> GoField:
    """Return a field that is written unless it is empty."""
    return GoField(type, Emit.FILLED)


def present(type: Type) -> GoField:
    """Return a field that is written if it was given."""
    return GoField(type, Emit.PRESENT)
