"""CEL types for variables without a schema.

Used by admission expressions and OIDC claims. The values of such variables are JSON values in
memory, a ``LazyValue`` that computes fields on demand, or a library's own values (``Authorizer``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.kube.cel.declared_types import Declared, DeclaredField
from instar.kube.cel.types import DYN, CelKind, Type, list_of, map_of


def _unconverted(raw: Any) -> Any:
    return raw


def record(name: str, fields: Mapping[str, Type]) -> Type:
    """Return an object type with exactly these fields."""
    declared = Declared(DYN, _unconverted)
    declared.type = Type(CelKind.OBJECT, name, declared=declared)
    for each, type in fields.items():
        declared.fields[each] = declared.by_name[each] = DeclaredField(
            each, Declared(type, _unconverted)
        )
    return declared.type


def open_record(name: str) -> Type:
    """Return an object type that has any field, of any type."""
    declared = Declared(DYN, _unconverted, others=Declared(DYN, _unconverted))
    declared.type = Type(CelKind.OBJECT, name, declared=declared)
    return declared.type


def without_objects(found: Type) -> Type:
    """Return the type with objects replaced by dyn, as one expression's type is visible to
    others."""
    match found.kind:
        case CelKind.LIST:
            return list_of(without_objects(found.params[0]))
        case CelKind.MAP:
            return map_of(*[without_objects(each) for each in found.params])
        case CelKind.PRIMITIVE | CelKind.NULL:
            return found
    return found if found.name in ("duration", "timestamp") else DYN
