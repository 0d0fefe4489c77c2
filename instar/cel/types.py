"""CEL types and when a value of one may stand where another is expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from instar.cel.declared import Declared


class Kind(Enum):
    PRIMITIVE = 1
    LIST = 2
    MAP = 3
    TYPE = 4
    OBJECT = 5
    OPAQUE = 6
    PARAM = 7
    DYN = 8
    ERROR = 9
    NULL = 10


@dataclass(frozen=True, slots=True)
class Type:
    kind: Kind
    name: str
    params: tuple[Type, ...] = ()
    declared: Declared | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"


BOOL = Type(Kind.PRIMITIVE, "bool")
INT = Type(Kind.PRIMITIVE, "int")
UINT = Type(Kind.PRIMITIVE, "uint")
DOUBLE = Type(Kind.PRIMITIVE, "double")
STRING = Type(Kind.PRIMITIVE, "string")
BYTES = Type(Kind.PRIMITIVE, "bytes")
DURATION = Type(Kind.OPAQUE, "duration")
TIMESTAMP = Type(Kind.OPAQUE, "timestamp")
NULL = Type(Kind.NULL, "null")
DYN = Type(Kind.DYN, "dyn")
ERROR = Type(Kind.ERROR, "!error!")


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, "map", (key, value))


def type_of(inner: Type) -> Type:
    return Type(Kind.TYPE, "type", (inner,))


def optional_of(inner: Type) -> Type:
    return Type(Kind.OPAQUE, "optional_type", (inner,))


def opaque(name: str) -> Type:
    return Type(Kind.OPAQUE, name)


def param(name: str) -> Type:
    return Type(Kind.PARAM, name)


def is_optional(candidate: Type) -> bool:
    return candidate.kind is Kind.OPAQUE and candidate.name == "optional_type"


_NULLABLE = (Kind.OBJECT, Kind.OPAQUE)


class Substitution:
    """What the type parameters seen so far stand for."""

    __slots__ = ("_bound", "_fresh")

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._fresh = 0

    def fresh(self) -> Type:
        self._fresh += 1
        return param(f"_{self._fresh}")

    def instantiate(self, types: Sequence[Type]) -> list[Type]:
        """The same types with parameters renamed apart from all others."""
        names: dict[str, Type] = {}
        return [self._rename(each, names) for each in types]

    def _rename(self, each: Type, names: dict[str, Type]) -> Type:
        if each.kind is Kind.PARAM:
            if each.name not in names:
                names[each.name] = self.fresh()
            return names[each.name]
        if not each.params:
            return each
        return Type(
            each.kind, each.name, tuple(self._rename(p, names) for p in each.params), each.declared
        )

    def assignable_all(self, expected: Sequence[Type], actual: Sequence[Type]) -> bool:
        """All pairs fit, or nothing is bound."""
        before = dict(self._bound)
        if all(self._assignable(e, a) for e, a in zip(expected, actual, strict=True)):
            return True
        self._bound = before
        return False

    def assignable(self, expected: Type, actual: Type) -> bool:
        return self.assignable_all((expected,), (actual,))

    def _assignable(self, expected: Type, actual: Type) -> bool:
        expected, actual = self._root(expected), self._root(actual)
        if expected == actual:
            return True
        if actual.kind is Kind.PARAM:
            return self._bind(actual.name, expected)
        if expected.kind is Kind.PARAM:
            return self._bind(expected.name, actual)
        kinds = (expected.kind, actual.kind)
        if Kind.DYN in kinds or Kind.ERROR in kinds:
            return True
        if expected.kind is Kind.NULL:
            return actual.kind in _NULLABLE
        if actual.kind is Kind.NULL:
            return expected.kind in _NULLABLE
        if expected.kind is not actual.kind or expected.name != actual.name:
            return False
        if len(expected.params) != len(actual.params):
            return False
        return expected.kind is not Kind.OBJECT and all(
            self._assignable(e, a) for e, a in zip(expected.params, actual.params, strict=True)
        )

    def _root(self, each: Type) -> Type:
        while each.kind is Kind.PARAM and each.name in self._bound:
            each = self._bound[each.name]
        return each

    def _bind(self, name: str, to: Type) -> bool:
        if self._occurs(name, to):
            return False
        self._bound[name] = to
        return True

    def _occurs(self, name: str, inside: Type) -> bool:
        inside = self._root(inside)
        if inside.kind is Kind.PARAM:
            return inside.name == name
        return any(self._occurs(name, each) for each in inside.params)

    def apply(self, each: Type, *, free_to_dyn: bool = False) -> Type:
        each = self._root(each)
        if each.kind is Kind.PARAM:
            return DYN if free_to_dyn else each
        if not each.params:
            return each
        inner = tuple(self.apply(p, free_to_dyn=free_to_dyn) for p in each.params)
        return Type(each.kind, each.name, inner, each.declared)


def more_general(left: Type, right: Type) -> Type:
    """Of two types that fit each other, the one that promises less."""
    return left if _as_general(left, right) else right


def _as_general(left: Type, right: Type) -> bool:
    if left.kind in (Kind.DYN, Kind.PARAM):
        return True
    if right.kind in (Kind.DYN, Kind.PARAM):
        return False
    if left.kind is Kind.NULL:
        return right.kind is Kind.NULL
    if right.kind is Kind.NULL:
        return True
    if len(left.params) != len(right.params):
        return False
    return all(_as_general(a, b) for a, b in zip(left.params, right.params, strict=True))
