"""CEL types, assignability and type parameter substitution.

Used by the checker, the function library and all code that declares variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from instar.kube.cel.declared_types import Declared


class CelKind(Enum):
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

    # Members are compared by identity; the default hash would run Python code.
    __hash__ = object.__hash__


class Type:
    """Immutable type, equal to any other with the same kind, name and parameters."""

    __slots__ = ("_hash", "declared", "kind", "name", "open", "params")

    def __init__(
        self,
        kind: CelKind,
        name: str,
        params: tuple[Type, ...] = (),
        declared: Declared | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self.declared = declared
        """The fields of an object; not part of the type's identity."""
        self.open = kind is CelKind.PARAM
        """Whether it contains a type parameter."""
        for each in params:
            self.open = self.open or each.open
        self._hash = hash((kind, name, params))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type) or self._hash != other._hash:
            return False
        return self.kind is other.kind and self.name == other.name and self.params == other.params

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join([str(each) for each in self.params])})"

    __repr__ = __str__


BOOL = Type(CelKind.PRIMITIVE, "bool")
INT = Type(CelKind.PRIMITIVE, "int")
UINT = Type(CelKind.PRIMITIVE, "uint")
DOUBLE = Type(CelKind.PRIMITIVE, "double")
STRING = Type(CelKind.PRIMITIVE, "string")
BYTES = Type(CelKind.PRIMITIVE, "bytes")
DURATION = Type(CelKind.OPAQUE, "duration")
TIMESTAMP = Type(CelKind.OPAQUE, "timestamp")
NULL = Type(CelKind.NULL, "null")
DYN = Type(CelKind.DYN, "dyn")
ERROR = Type(CelKind.ERROR, "!error!")
TYPE = Type(CelKind.TYPE, "type")
"""The type of ``type`` itself, which has no parameter."""


def list_of(element: Type) -> Type:
    return Type(CelKind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(CelKind.MAP, "map", (key, value))


def type_of(inner: Type) -> Type:
    return Type(CelKind.TYPE, "type", (inner,))


def optional_of(inner: Type) -> Type:
    return Type(CelKind.OPAQUE, "optional_type", (inner,))


def opaque(name: str) -> Type:
    return Type(CelKind.OPAQUE, name)


def message(name: str) -> Type:
    """Return a library type that upstream declares as a message without fields."""
    return Type(CelKind.OBJECT, name)


def param(name: str) -> Type:
    return Type(CelKind.PARAM, name)


def is_optional(candidate: Type) -> bool:
    return candidate.kind is CelKind.OPAQUE and candidate.name == "optional_type"


def unwrap_optional(candidate: Type) -> Type:
    """Return the content type of an optional; any other type is returned unchanged."""
    return candidate.params[0] if is_optional(candidate) else candidate


def is_dyn_or_error(candidate: Type) -> bool:
    return candidate.kind is CelKind.DYN or candidate.kind is CelKind.ERROR


_NULLABLE = (CelKind.OBJECT, CelKind.OPAQUE)


class Substitution:
    """Bindings of the type parameters seen so far."""

    __slots__ = ("_bound", "_fresh", "_undo")

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._undo: list[tuple[str, Type | None]] = []
        self._fresh = 0

    def fresh(self) -> Type:
        self._fresh += 1
        return param(f"_var{self._fresh - 1}")

    def instantiate(self, types: Sequence[Type], names: Sequence[str]) -> list[Type]:
        """Return the types with the parameters ``names`` renamed to fresh ones."""
        renamed = {name: self.fresh() for name in names}
        return [_rename(each, renamed) for each in types]

    def assignable_all(self, ours: Sequence[Type], theirs: Sequence[Type]) -> bool:
        """Return whether all pairs are assignable; otherwise bind nothing."""
        start = len(self._undo)
        for one, other in zip(ours, theirs, strict=True):
            if one is not other and not self._assignable(one, other):
                self._roll_back(start)
                return False
        return True

    def assignable(self, one: Type, other: Type) -> bool:
        return one is other or self.assignable_all((one,), (other,))

    def _roll_back(self, to: int) -> None:
        while len(self._undo) > to:
            name, before = self._undo.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before

    def _bind(self, name: str, to: Type) -> None:
        self._undo.append((name, self._bound.get(name)))
        self._bound[name] = to

    def _assignable(self, one: Type, other: Type) -> bool:
        if other.kind is CelKind.PARAM:
            fits, known = self._can_bind(one, other)
            if fits or known:
                return fits
        if one.kind is CelKind.PARAM:
            return self._can_bind(other, one)[0]
        if is_dyn_or_error(one) or is_dyn_or_error(other):
            return True
        if one.kind is CelKind.NULL or other.kind is CelKind.NULL:
            return one.kind is other.kind or one.kind in _NULLABLE or other.kind in _NULLABLE
        if one.kind is CelKind.TYPE:
            return other.kind is CelKind.TYPE
        if one.kind is not other.kind or one.name != other.name:
            return False
        if len(one.params) != len(other.params):
            return False
        for ours, theirs in zip(one.params, other.params, strict=True):
            if not self._assignable(ours, theirs):
                return False
        return True

    def _can_bind(self, candidate: Type, parameter: Type) -> tuple[bool, bool]:
        """Return whether ``candidate`` can be bound to the parameter, and whether it already
        was."""
        if candidate == parameter:
            return True, True
        known = self._bound.get(parameter.name)
        if known is None:
            if not self._unmentioned(parameter, candidate):
                return False, False
            self._bind(parameter.name, candidate)
            return True, False
        if candidate == known:
            return True, True
        if not self._assignable(candidate, known):
            return False, True
        general = more_general(candidate, known)
        if self._unmentioned(parameter, general):
            self._bind(parameter.name, general)
        return True, True

    def _unmentioned(self, parameter: Type, inside: Type) -> bool:
        todo = [inside]
        while todo:
            each = todo.pop()
            if each.kind is CelKind.PARAM:
                if each.name == parameter.name:
                    return False
                if each.name in self._bound:
                    todo.append(self._bound[each.name])
            elif each.open:
                todo += each.params
        return True

    def apply(self, each: Type, *, free_to_dyn: bool = False) -> Type:
        while each.kind is CelKind.PARAM and each.name in self._bound:
            each = self._bound[each.name]
        if each.kind is CelKind.PARAM:
            return DYN if free_to_dyn else each
        if not each.open:
            return each
        inner = tuple([self.apply(p, free_to_dyn=free_to_dyn) for p in each.params])
        return Type(each.kind, each.name, inner, each.declared)


def _rename(each: Type, names: dict[str, Type]) -> Type:
    if each.kind is CelKind.PARAM:
        return names.get(each.name, each)
    if not each.open:
        return each
    inner = tuple([_rename(p, names) for p in each.params])
    return Type(each.kind, each.name, inner, each.declared)


def parameter_names(types: Sequence[Type]) -> tuple[str, ...]:
    """Return the type parameters that occur anywhere in ``types``."""
    found: dict[str, None] = {}
    todo = list(types)
    while todo:
        each = todo.pop()
        if each.kind is CelKind.PARAM:
            found[each.name] = None
        todo += each.params
    return tuple(found)


def more_general(left: Type, right: Type) -> Type:
    """Return the more general of two types that are assignable to each other."""
    return left if _as_general(left, right) else right


def _as_general(left: Type, right: Type) -> bool:
    if left.kind in (CelKind.DYN, CelKind.PARAM):
        return True
    if right.kind in (CelKind.DYN, CelKind.PARAM) or left.kind is not right.kind:
        return False
    if left.kind is CelKind.TYPE:
        return True
    if left.name != right.name or len(left.params) != len(right.params):
        return False
    for one, other in zip(left.params, right.params, strict=True):
        if not _as_general(one, other):
            return False
    return True


def equivalent(left: Type, right: Type) -> bool:
    """Return whether two types are equal up to the names of their parameters."""
    todo = [(left, right)]
    while todo:
        one, other = todo.pop()
        if one == other:
            continue
        if one.kind is not other.kind or len(one.params) != len(other.params):
            return False
        if one.kind is not CelKind.PARAM and one.name != other.name:
            return False
        todo += zip(one.params, other.params, strict=True)
    return True


_RUNTIME_NAMES = {
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "null": "null_type",
}


def runtime_name(name: str) -> str:
    """Return the name that ``type()`` gives for the checker's ``name``."""
    return _RUNTIME_NAMES.get(name, name)
