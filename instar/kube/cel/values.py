"""Values while an expression runs. Plain Python where Python agrees with CEL; a class where not.

``ObjectValue``, ``MapValue`` and ``ListValue`` wrap JSON as it lies in memory: nothing is converted
until an expression touches it, and then only what it touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.kube.cel.declared_types import Declared

INT_MIN, INT_MAX, UINT_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


class CelError(Exception):
    """An evaluation that ended in an error value; the text is what a client sees."""


class NoSuchOverload(CelError):
    """Arguments no variant of a function takes; found only where types were not known before."""

    def __init__(self, text: str = "no such overload") -> None:
        super().__init__(text)


class CostExceeded(Exception):
    """The expression spent more than it may; never absorbed by ``&&`` or ``||``."""

    def __init__(self, cost: int = 0) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
        self.cost = cost


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

    def cel_size(self) -> int:
        """What the cost model takes for the size of the value."""
        return 1

    def cel_equals(self, other: Any) -> bool:
        """Values of another type cannot be compared, unlike everywhere else in CEL."""
        if type(self) is not type(other):
            raise NoSuchOverload
        return self == other


class Flag(Enum):
    """A bool as one of several kinds of keys; to Python the bool itself would be 0 or 1."""

    FALSE = False
    TRUE = True


FLAGS = {False: Flag.FALSE, True: Flag.TRUE}


class _Missing:
    __slots__ = ()


MISSING = _Missing()
"""No value: unlike None, which is CEL's null."""


class ObjectValue:
    """An object with declared fields."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: Mapping[str, Any], declared: Declared) -> None:
        self.raw = raw
        self.declared = declared

    def find(self, name: str) -> Any:
        """The value of a field, or MISSING; null counts as missing."""
        field = self.declared.field_named(name)
        raw = None if field is None else self.raw.get(field.name)
        return MISSING if raw is None or field is None else field.declared.convert(raw)

    def items(self) -> Iterator[tuple[str, Any]]:
        for shown, held in self.declared.fields.items():
            raw = self.raw.get(held.name)
            if raw is not None:
                yield shown, held.declared.convert(raw)


class MessageFields:
    """Base of objects that are no JSON: their fields hold CEL values."""

    __slots__ = ("cel_type",)

    def __init__(self, cel_type: str) -> None:
        self.cel_type = cel_type
        """The name ``type()`` shows."""

    def find(self, name: Any) -> Any:
        """The value of a field, or MISSING."""
        raise NotImplementedError


class StructValue(MessageFields):
    """An object an expression built."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, Any], cel_type: str) -> None:
        super().__init__(cel_type)
        self.fields = fields

    def find(self, name: Any) -> Any:
        return self.fields.get(name, MISSING)


class LazyValue(MessageFields):
    """An object whose fields are computed when an expression first reads them, and remembered,
    error or not. Equal only to itself."""

    __slots__ = ("_compute", "_known")

    def __init__(self, compute: Mapping[str, Callable[[], Any]], cel_type: str) -> None:
        super().__init__(cel_type)
        self._compute = compute
        self._known: dict[str, tuple[Any, CelError | None]] = {}

    def find(self, name: Any) -> Any:
        held = self._known.get(name)
        if held is None:
            compute = self._compute.get(name)
            if compute is None:
                return MISSING
            try:
                held = (compute(), None)
            except CelError as error:
                held = (None, error)
            self._known[name] = held
        found, failure = held
        if failure is not None:
            raise failure.with_traceback(None)
        return found


class MapValue:
    """A JSON object with values of one declared type."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: Mapping[str, Any], declared: Declared) -> None:
        self.raw = raw
        self.declared = declared

    def find(self, name: Any) -> Any:
        """The value of a key, or MISSING."""
        if type(name) is not str:
            raise NoSuchOverload
        raw = self.raw.get(name, MISSING)
        return raw if raw is MISSING else self.declared.convert_element(raw)

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
    return value.cel_size() if isinstance(value, Opaque) else 1


def type_name(value: Any) -> str:
    """As ``type()`` shows it; an object of a schema is a map."""
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    return value.cel_type if isinstance(value, Opaque | MessageFields) else "dyn"


_NAMES: dict[type, str] = {
    bool: "bool",
    Flag: "bool",
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
    ObjectValue: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    OptionalValue: "optional_type",
}
