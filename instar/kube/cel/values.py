"""Run-time values of CEL: Python's own where they agree with CEL, classes where not.

Used by the interpreter, the function library and all callers that pass in values. ``ObjectValue``,
``MapValue`` and ``ListValue`` wrap JSON in memory and convert only the parts that an expression
reads.
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
    """An evaluation error; the text is what a client sees."""


class NoSuchOverload(CelError):
    """The arguments fit no overload; possible only where types were dynamic."""

    def __init__(self, text: str = "no such overload") -> None:
        super().__init__(text)


class CostExceeded(Exception):
    """The expression exceeded its cost limit; ``&&`` and ``||`` never absorb it."""

    def __init__(self, cost: int = 0) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
        self.cost = cost


class Uint(int):
    """An unsigned integer; equal to an int of the same value, as in CEL."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Nanoseconds since 1970 in UTC; the original offset is kept only for its text."""

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
    """Base of library values (IP, quantity …); ``cel_type`` is the name that ``type()`` returns."""

    __slots__ = ()
    cel_type = ""

    def cel_size(self) -> int:
        """Return the size of the value in the cost model."""
        return 1

    def cel_equals(self, other: Any) -> bool:
        """Compare; unlike elsewhere in CEL, comparing values of different types is an error."""
        if type(self) is not type(other):
            raise NoSuchOverload
        return self == other


class Flag(Enum):
    """A bool as a hash key; Python's own bool would equal 0 or 1."""

    FALSE = False
    TRUE = True


FLAGS = {False: Flag.FALSE, True: Flag.TRUE}


class _Missing:
    __slots__ = ()


MISSING = _Missing()
"""No value, as opposed to None, which is CEL's null."""


class ObjectValue:
    """An object with declared fields."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: Mapping[str, Any], declared: Declared) -> None:
        self.raw = raw
        self.declared = declared

    def find(self, name: str) -> Any:
        """Return the value of a field, or MISSING; null counts as missing."""
        field = self.declared.field_named(name)
        raw = None if field is None else self.raw.get(field.name)
        return MISSING if raw is None or field is None else field.declared.convert(raw)

    def items(self) -> Iterator[tuple[str, Any]]:
        for shown, held in self.declared.fields.items():
            raw = self.raw.get(held.name)
            if raw is not None:
                yield shown, held.declared.convert(raw)


class MessageFields:
    """Base of objects that are not JSON: their fields hold CEL values."""

    __slots__ = ("cel_type",)

    def __init__(self, cel_type: str) -> None:
        self.cel_type = cel_type
        """The name that ``type()`` returns."""

    def find(self, name: Any) -> Any:
        """Return the value of a field, or MISSING."""
        raise NotImplementedError


class StructValue(MessageFields):
    """An object that an expression constructed."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, Any], cel_type: str) -> None:
        super().__init__(cel_type)
        self.fields = fields

    def find(self, name: Any) -> Any:
        return self.fields.get(name, MISSING)


class LazyValue(MessageFields):
    """An object that computes its fields on first read and caches results and errors. Equal only
    to itself."""

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
        """Return the value of a key, or MISSING."""
        if type(name) is not str:
            raise NoSuchOverload
        raw = self.raw.get(name, MISSING)
        return raw if raw is MISSING else self.declared.convert_element(raw)

    def items(self) -> Iterator[tuple[str, Any]]:
        convert = self.declared.convert_element
        return ((name, convert(raw)) for name, raw in self.raw.items())


class ListValue:
    """A JSON array; ``declared.list_type`` decides the meaning of equality and ``+``."""

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
    """Return all elements, converted."""
    return value if type(value) is list else list(value)


def size_of(value: Any) -> int:
    """Return the size in the cost model: length of strings, lists and maps, else 1."""
    kind = type(value)
    if kind is str or kind is list or kind is bytes or kind is dict:
        return len(value)
    if kind is ListValue or kind is MapValue or kind is ObjectValue:
        return len(value.raw)
    if kind is OptionalValue and value.present:
        return size_of(value.content)
    return value.cel_size() if isinstance(value, Opaque) else 1


def type_name(value: Any) -> str:
    """Return the name as ``type()`` shows it; an object of a schema is a map."""
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
