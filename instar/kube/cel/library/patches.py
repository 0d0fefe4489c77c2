"""Objects and JSON patches a mutation builds: ``Object{spec: Object.spec{replicas: 3}}``,
``JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey(name), value: "x"}``.

Rules of CRDs have none of this. No schema is asked: a type's name only tells where the object is to
stand, and ``misplaced`` compares it with where it does.
"""

from __future__ import annotations

from typing import Any

from instar.kube.cel.functions import Overload, estimated_copy, function, per_byte
from instar.kube.cel.host_types import open_record, record
from instar.kube.cel.types import DYN, STRING, Type
from instar.kube.cel.values import StructValue

OBJECT = "Object"
JSON_PATCH = record("JSONPatch", {"op": STRING, "from": STRING, "path": STRING, "value": DYN})


def type_named(name: str) -> Type | None:
    if name == JSON_PATCH.name:
        return JSON_PATCH
    return open_record(name) if name == OBJECT or name.startswith(f"{OBJECT}.") else None


def misplaced(value: StructValue) -> list[str]:
    """Objects in it whose type is not named after the fields that lead to them; what lies in such
    an object is not looked at."""
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
            work=per_byte,
            estimate=estimated_copy,
            by_name=True,
        )
    ]
