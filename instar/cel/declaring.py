"""Types for the variables of a host that has no schema: admission, selectors of devices.

Their values are plain JSON as it lies in memory (``dict``, ``list``, text, numbers, None), a
``LazyValue`` whose fields are computed on demand, or a library's own (``Authorizer``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.cel.declared import Declared, Field
from instar.cel.types import DYN, Kind, Type, list_of, map_of


def _as_it_is(raw: Any) -> Any:
    return raw


def record(name: str, fields: Mapping[str, Type]) -> Type:
    """An object type with these fields and no others."""
    declared = Declared(DYN, _as_it_is)
    declared.type = Type(Kind.OBJECT, name, declared=declared)
    for each, type in fields.items():
        declared.fields[each] = declared.by_name[each] = Field(each, Declared(type, _as_it_is))
    return declared.type


def open_record(name: str) -> Type:
    """An object type that has any field, of any type."""
    declared = Declared(DYN, _as_it_is, others=Declared(DYN, _as_it_is))
    declared.type = Type(Kind.OBJECT, name, declared=declared)
    return declared.type


def without_objects(found: Type) -> Type:
    """What one expression tells another of its type: of objects, nothing."""
    match found.kind:
        case Kind.LIST:
            return list_of(without_objects(found.params[0]))
        case Kind.MAP:
            return map_of(*[without_objects(each) for each in found.params])
        case Kind.PRIMITIVE | Kind.NULL:
            return found
    return found if found.name in ("duration", "timestamp") else DYN
