"""Typed decoder for CustomResourceDefinitions: reads JSON as kube-apiserver's Go types do.

Called by ``crd_codec.py`` and ``server/registry/kinds/crds.py``. Unknown fields are dropped and
reported, wrong JSON types raise an error with the Go type's name, and zero values are written as Go
encodes them. The types are the tables of ``crd_types.py``; validation comes later, in
``kube/crds``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.crd_types import crd_type
from instar.kube.api.encoding.go_base64 import corrupt_at
from instar.kube.api.encoding.go_json_errors import go_type
from instar.kube.api.go_types import (
    STRING,
    STRINGS,
    Emit,
    GoField,
    ListOf,
    MapOf,
    Scalar,
    ScalarForm,
    Struct,
    Type,
    Union,
    UnionKind,
)

_INTEGER_LIMITS = {"int32": 2**31, "int64": 2**63}
_EXACT_FLOAT = 2**53


class CrdDecodeError(ValueError):
    """The body does not fit the type; the text is what follows ``cannot be handled as a …:``."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded object and the paths of its unknown fields."""

    obj: Object
    unknown: list[str]
    """Paths of dropped fields, in document order."""


class _Place:
    """Position of the decoder: its ``path`` and the Go struct and field names for errors.

    A linked list of steps that builds texts on demand: a schema has thousands of positions and
    nearly none appears in an error.
    """

    __slots__ = ("_above", "_step", "struct", "unknown")

    def __init__(
        self,
        above: _Place | None = None,
        step: str | int = "",
        struct: str = "",
        unknown: list[str] | None = None,
    ) -> None:
        self._above, self._step, self.struct = above, step, struct
        self.unknown = unknown
        """None inside a union, which upstream decodes separately without reporting unknown
        fields."""

    def into_field(self, struct: str, name: str) -> _Place:
        return _Place(self, name, struct, self.unknown)

    def into_key(self, name: str) -> _Place:
        return _Key(self, name, self.struct, self.unknown)

    def into_item(self, position: int) -> _Place:
        return _Key(self, position, self.struct, self.unknown)

    def unreported(self) -> _Place:
        return _HiddenStep(self, "", self.struct, None)

    @property
    def path(self) -> str:
        out = ""
        for place in self._from_root():
            step = place._step
            if isinstance(step, int):
                out = f"{out}[{step}]"
            elif not isinstance(place, _HiddenStep):
                out = f"{out}.{step}" if out or isinstance(place, _Key) else step
        return out

    @property
    def stack(self) -> list[str]:
        """Return the fields on the path, without map keys and list positions."""
        return [str(place._step) for place in self._from_root() if type(place) is _Place]

    def _from_root(self) -> list[_Place]:
        """Return the positions from the first step to this one."""
        found: list[_Place] = []
        place = self
        while place._above is not None:
            found.append(place)
            place = place._above
        found.reverse()
        return found

    def mismatch(self, found: str, wanted: str) -> CrdDecodeError:
        stack = self.stack
        target = f"Go struct field {self.struct}.{'.'.join(stack)}" if stack else "Go value"
        return CrdDecodeError(f"json: cannot unmarshal {found} into {target} of type {wanted}")


class _Key(_Place):
    """A step into a map key or list position."""

    __slots__ = ()


class _HiddenStep(_Place):
    """A step that is not part of the path in error messages."""

    __slots__ = ()


def decode(obj: Any, version: str) -> Decoded:
    """Return ``obj`` as the ``v1`` or ``v1beta1`` type prints it. Raises ``CrdDecodeError``."""
    place = _Place(unknown=[])
    shape = crd_type(version)
    if not isinstance(obj, dict):
        raise place.mismatch(go_type(obj), shape.go)
    try:
        return Decoded(_struct(obj, shape, place), place.unknown or [])
    except RecursionError:
        raise CrdDecodeError("exceeded max depth") from None


def _value(value: Any, type: Type, place: _Place) -> Any:
    match type:
        case Scalar():
            return _scalar(value, type, place)
        case ListOf():
            return _list(value, type, place)
        case MapOf():
            return _map(value, type, place)
        case Struct():
            if not isinstance(value, dict):
                raise place.mismatch(go_type(value), type.go)
            return _struct(value, type, place)
        case Union():
            return _union(value, type, place.unreported())


def _struct(value: Mapping[str, Any], type: Struct, place: _Place) -> Object:
    out: Object = {}
    for name, raw in value.items():
        spec = type.fields.get(name)
        if spec is None:
            if place.unknown is not None:
                place.unknown.append(place.into_key(name).path if place.path else name)
        elif spec.type is STRING and raw.__class__ is str:
            if raw or spec.emit is not Emit.FILLED:
                out[name] = raw
        elif raw is not None:
            read = _value(raw, spec.type, place.into_field(type.name, name))
            if _is_kept(read, spec):
                out[name] = read
    for name, empty in type.always:
        if name not in out:
            out[name] = zero(empty)
    return out


def _is_kept(read: Any, spec: GoField) -> bool:
    """Return whether to keep a value; an empty list counts as absent, because storage drops it."""
    if spec.emit is Emit.FILLED or isinstance(spec.type, ListOf):
        return bool(read)
    return read is not None


def zero(type: Type) -> Any:
    """Return what Go prints for a field that was never set."""
    match type:
        case Struct():
            return {name: zero(empty) for name, empty in type.always}
        case Scalar(form=ScalarForm.STRING):
            return ""
        case Scalar(form=ScalarForm.BOOL):
            return False
        case _:
            return None


def _list(value: Any, type: ListOf, place: _Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.mismatch(go_type(value), type.go)
    return [
        _element(item, type.item, place.into_item(position)) for position, item in enumerate(value)
    ]


def _map(value: Any, type: MapOf, place: _Place) -> Object:
    if not isinstance(value, dict):
        raise place.mismatch(go_type(value), type.go)
    return {name: _element(item, type.item, place.into_key(name)) for name, item in value.items()}


def _element(value: Any, type: Type, place: _Place) -> Any:
    """Decode a list item or map value, where null is the zero value."""
    if value is None:
        return zero(type)
    return _value(value, type, place)


def _union(value: Any, type: Union, place: _Place) -> Any:
    if isinstance(value, dict):
        return _struct(value, type.schema, place)
    listed = isinstance(value, list)
    match type.kind:
        case UnionKind.SCHEMA_OR_BOOL:
            if not isinstance(value, bool):
                raise CrdDecodeError("boolean or JSON schema expected")
            return value
        case UnionKind.SCHEMA_OR_ARRAY:
            return (_list(value, ListOf(type.schema), place) or None) if listed else None
        case UnionKind.SCHEMA_OR_STRINGS:
            return _list(value, STRINGS, place) if listed else []


def _scalar(value: Any, type: Scalar, place: _Place) -> Any:
    match type.form:
        case ScalarForm.ANY:
            return value
        case ScalarForm.STRING | ScalarForm.TIME:
            fits = isinstance(value, str)
        case ScalarForm.BOOL:
            fits = isinstance(value, bool)
        case ScalarForm.BYTES:
            return _bytes(value, type, place)
        case ScalarForm.INTEGER:
            return _integer(value, type, place)
        case ScalarForm.FLOAT:
            return _float(value, type, place)
    if not fits:
        raise place.mismatch(go_type(value), type.go)
    return value


def _integer(value: Any, type: Scalar, place: _Place) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.mismatch(go_type(value), type.go)
    limit = _INTEGER_LIMITS[type.go]
    if isinstance(value, float) or not -limit <= value < limit:
        raise place.mismatch(f"number {value!r}", type.go)
    return value


def _float(value: Any, type: Scalar, place: _Place) -> int | float:
    """Decode a number; whole numbers become ``int``, so that 1 and 1.0 are one value, as in Go."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.mismatch(go_type(value), type.go)
    if abs(value) <= _EXACT_FLOAT and value == int(value):
        return int(value)
    return float(value)


def _bytes(value: Any, type: Scalar, place: _Place) -> str:
    if not isinstance(value, str):
        raise place.mismatch(go_type(value), type.go)
    text = value.replace("\r", "").replace("\n", "")
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except (binascii.Error, ValueError):
        at = corrupt_at(value.encode())
        raise CrdDecodeError(f"illegal base64 data at input byte {at}") from None
