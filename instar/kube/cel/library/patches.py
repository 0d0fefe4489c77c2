"""CEL types for mutating policies: ``Object{…}`` and ``JSONPatch{…}``, and ``jsonpatch.escapeKey``.

Used by ``kube/admission``; rules of CRDs have none of this. Types are not checked against schemas:
a type's name such as ``Object.spec`` only states the field path, which ``misplaced_types`` checks.
"""

from __future__ import annotations

from typing import Any

from instar.kube.cel.functions import Overload, estimated_copy, first_argument_cost, function
from instar.kube.cel.host_types import open_record, record
from instar.kube.cel.types import DYN, STRING, Type
from instar.kube.cel.values import StructValue

OBJECT = "Object"
JSON_PATCH = record("JSONPatch", {"op": STRING, "from": STRING, "path": STRING, "value": DYN})


def type_named(name: str) -> Type | None:
    if name == JSON_PATCH.name:
        return JSON_PATCH
    return open_record(name) if name == OBJECT or name.startswith(f"{OBJECT}.") else None


def misplaced_types(value: StructValue) -> list[str]:
    """Return the objects with a type name that does not match their field path; objects inside
    those are not checked."""
    found: list[str] = []
    todo: list[tuple[Any, str]] = [(value, value.cel_type)]
    while todo:
        each, path = todo.pop()
        match each:
            case StructValue():
                if each.cel_type != path:
                    found.append(
                        f'unexpected type name "{each.cel_type}", expected "{path}", which matches '
                        "field name path from root Object type"
                    )
                    continue
                todo += [(inner, f"{path}.{name}") for name, inner in each.fields.items()]
            case dict():
                todo += [(inner, path) for inner in each.values()]
            case list():
                todo += [(inner, path) for inner in each]
    return found


def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def overloads() -> list[Overload]:
    return [
        function(
            "jsonpatch.escapeKey",
            (STRING,),
            STRING,
            _escape_key,
            work=first_argument_cost,
            estimate=estimated_copy,
            by_name=True,
        )
    ]
