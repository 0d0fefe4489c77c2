"""Values while an expression runs. Plain Python where Python agrees with CEL; a class where not.

``ObjectValue``, ``MapValue`` and ``ListValue`` wrap JSON as it lies in memory: nothing is converted
until an expression touches it, and then only what it touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from instar.cel.declared import Declared

INT_MIN, INT_MAX, UINT_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


class CelError(Exception):
    """An evaluation that ended in an error value; the text is what a client sees."""


class NoSuchOverload(CelError):
    def __init__(self) -> None:
        super().__init__("no such overload")


class CostExceeded(Exception):
    """The expression spent more than it may; never absorbed by ``&&`` or ``||``."""


class Uint(int):
    """An unsigned integer; equal to an int of the same value, as CEL wants."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Nanoseconds since 1970 in UTC; the offset it was written with shows only in its text."""

    nanos: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TypeValue:
    name: str


@dataclass(frozen=True, slots=True)
class OptionalValue:
    present: bool
    content: Any = None

    def value(self) -> Any:
        if not self.present:
            raise CelError("optional.none() dereference")
        return self.content


NONE = OptionalValue(False)


class Opaque:
    """Base of library values (IP, quantity …); ``cel_type`` is the name ``type()`` shows."""

    __slots__ = ()
    cel_type = ""


class ObjectValue:
    """An object with declared fields."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: Mapping[str, Any], declared: Declared) -> None:
        self.raw = raw
        self.declared = declared

    def get(self, name: str) -> Any:
        field = self.declared.fields.get(name)
        raw = None if field is None else self.raw.get(field.name)
        if raw is None or field is None:
            raise CelError(f"no such key: {name}")
        return field.declared.convert(raw)

    def has(self, name: str) -> bool:
        field = self.declared.fields.get(name)
        return field is not None and self.raw.get(field.name) is not None


class MapValue:
    """A JSON object with values of one declared type."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: Mapping[str, Any], declared: Declared) -> None:
        self.raw = raw
        self.declared = declared

    def get(self, name: Any) -> Any:
        if name not in self.raw:
            raise CelError(f"no such key: {name}")
        return self.declared.convert_element(self.raw[name])

    def items(self) -> Iterator[tuple[str, Any]]:
        convert = self.declared.convert_element
        return ((name, convert(raw)) for name, raw in self.raw.items())


class ListValue:
    """A JSON array; ``declared.list_type`` decides what equality and ``+`` mean."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: Sequence[Any], declared: Declared) -> None:
        self.raw = raw
        self.declared = declared

    def __iter__(self) -> Iterator[Any]:
        convert = self.declared.convert_element
        return (convert(raw) for raw in self.raw)


def is_list(value: Any) -> bool:
    return type(value) is list or type(value) is ListValue


def is_map(value: Any) -> bool:
    return type(value) is dict or type(value) is MapValue


def as_list(value: Any) -> list[Any]:
    """All elements, converted."""
    return value if type(value) is list else list(value)


def size_of(value: Any) -> int:
    """What the cost model calls the size: length of strings, lists and maps, else 1."""
    kind = type(value)
    if kind is str or kind is list or kind is bytes or kind is dict:
        return len(value)
    if kind is ListValue or kind is MapValue or kind is ObjectValue:
        return len(value.raw)
    if kind is OptionalValue and value.present:
        return size_of(value.content)
    return 1


def type_name(value: Any) -> str:
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, ObjectValue):
        return str(value.declared.type)
    return value.cel_type if isinstance(value, Opaque) else "dyn"


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    ListValue: "list",
    dict: "map",
    MapValue: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    OptionalValue: "optional_type",
}
