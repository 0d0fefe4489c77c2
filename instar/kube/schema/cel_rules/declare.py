"""CEL type declarations of structural schema nodes: the type of ``self`` and its maximum size.

Called by ``compile.py``, ``check.py`` and the admission policies' type checking. Sizes are the
input of the cost estimate. ``None`` means that the node has no CEL type: it cannot have rules, and
rules of its parents cannot access it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.kube.cel import json_to_cel as convert
from instar.kube.cel.declared_types import Declared, DeclaredField
from instar.kube.cel.syntax.property_names import escape
from instar.kube.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelKind,
    Type,
    list_of,
    map_of,
)
from instar.kube.schema.structure.structural import Structural

MAX_REQUEST = 3 * 1024 * 1024
_MAX_CONTENT = MAX_REQUEST - 2
_BYTES_PER_CHARACTER = 4
_SCALARS = ("string", "boolean", "integer", "number")
_STRING = Structural(type="string")
_METADATA = Structural(type="object", properties={"name": _STRING, "generateName": _STRING})


def declare(node: Structural, *, root: bool = False, name: str = "selfType") -> Declared | None:
    """Return the declaration. ``root``: a whole resource, which exposes its type and name
    fields."""
    declared = _declare(node, root or node.embedded, name)
    if declared is not None and node.nullable:
        declared.nullable = True
        declared.convert = convert.or_null(declared.convert)
    return declared


def _declare(node: Structural, resource: bool, name: str) -> Declared | None:
    if node.int_or_string:
        return Declared(DYN, convert.to_scalar, max_size=_characters(node), min_bytes=1)
    match node.type:
        case "object":
            if isinstance(node.additional, Structural):
                return _map(node, node.additional, name)
            return _object(with_meta(node) if resource else node, name)
        case "array":
            return _list(node, name)
        case "string":
            return _string(node)
        case "boolean":
            return Declared(BOOL, convert.plain(bool, "bool"), plain=bool, min_bytes=4)
        case "integer":
            return Declared(INT, convert.plain(int, "int"), plain=int, min_bytes=1)
        case "number":
            return Declared(DOUBLE, convert.to_double, plain=float, min_bytes=1)
    return None


def can_declare(node: Structural) -> bool:
    """Return whether ``declare`` would find a type."""
    while not node.int_or_string:
        inner = node.additional if node.type == "object" else node.items
        if node.type == "object" and not isinstance(inner, Structural):
            return True
        if node.type not in ("object", "array") or not isinstance(inner, Structural):
            return node.type in _SCALARS
        node = inner
    return True


def with_meta(node: Structural) -> Structural:
    """Return the node with the type and name fields that every resource exposes to its rules."""
    held = node.properties
    metadata = held.get("metadata")
    if (
        all(name in held and held[name].type == "string" for name in ("apiVersion", "kind"))
        and metadata is not None
        and metadata.type == "object"
        and all(n in metadata.properties for n in ("name", "generateName"))
    ):
        return node
    shown = {"apiVersion": _STRING, "kind": _STRING, "metadata": _METADATA}
    return replace(node, properties={**held, **shown})


def _object(node: Structural, name: str) -> Declared:
    declared = Declared(DYN, convert.to_scalar)
    declared.type = Type(CelKind.OBJECT, name, declared=declared)
    declared.convert = convert.to_object(declared)
    required = node.raw.get("required") or ()
    declared.min_bytes = 2
    for property_name, schema in node.properties.items():
        member = declare(schema, name=f"{name}.{property_name}")
        if member is None:
            continue
        field = DeclaredField(property_name, member)
        declared.by_name[property_name] = field
        identifier = escape(property_name)
        if identifier is not None:
            declared.fields[identifier] = field
        if property_name in required and schema.default is None:
            declared.min_bytes += len(property_name.encode()) + 4 + member.min_bytes
    return declared


def _map(node: Structural, values: Structural, name: str) -> Declared | None:
    element = declare(values, name=f"{name}.@elem")
    if element is None:
        return None
    most = _limit(node.raw.get("maxProperties"))
    declared = Declared(map_of(STRING, element.type), convert.to_scalar, element=element)
    declared.key = _KEY
    declared.max_size = _MAX_CONTENT // (element.min_bytes + 6) if most is None else most
    declared.min_bytes = 2
    declared.convert = convert.to_map(declared)
    return declared


def _list(node: Structural, name: str) -> Declared | None:
    element = None if node.items is None else declare(node.items, name=f"{name}.@idx")
    if element is None:
        return None
    most = _limit(node.raw.get("maxItems"))
    declared = Declared(list_of(element.type), convert.to_scalar, element=element)
    declared.max_size = _MAX_CONTENT // (element.min_bytes + 1) if most is None else most
    declared.min_bytes = 2
    declared.list_type = node.list_type or "atomic"
    declared.list_keys = node.list_map_keys
    declared.convert = convert.to_list(declared)
    return declared


_KEY = Declared(STRING, convert.plain(str, "string"), plain=str, min_bytes=2)
"""A map key; upstream gives it no size."""


@dataclass(frozen=True, slots=True)
class _Format:
    type: Type
    convert: convert.Convert
    max_size: int
    min_bytes: int


_FORMATS = {
    "byte": _Format(BYTES, convert.to_bytes, _MAX_CONTENT, 2),
    "duration": _Format(DURATION, convert.to_duration, 32, 3),
    "date": _Format(TIMESTAMP, convert.to_date, 12, 12),
    "date-time": _Format(TIMESTAMP, convert.to_timestamp, 32, 21),
}


def _string(node: Structural) -> Declared:
    most = _limit(node.raw.get("maxLength"))
    known = _FORMATS.get(node.raw.get("format") or "")
    if known is not None:
        size = most if known.type is BYTES and most is not None else known.max_size
        return Declared(known.type, known.convert, max_size=size, min_bytes=known.min_bytes)
    size = _characters(node)
    values = node.raw.get("enum")
    if most is None and isinstance(values, list) and values:
        size = max((len(text.encode()) for text in values if isinstance(text, str)), default=0)
    return Declared(STRING, convert.plain(str, "string"), plain=str, max_size=size, min_bytes=2)


def _characters(node: Structural) -> int:
    """Return the maximum length of a string in bytes."""
    most = _limit(node.raw.get("maxLength"))
    return _MAX_CONTENT if most is None else most * _BYTES_PER_CHARACTER


def _limit(raw: Any) -> int | None:
    return max(raw, 0) if isinstance(raw, int) and not isinstance(raw, bool) else None
