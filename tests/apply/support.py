"""One schema with every kind of list and map, and short ways to say object and writer."""

from __future__ import annotations

from typing import Any

from instar.kube.apply.managers import Writer, ignored_fields
from instar.kube.apply.ownership_schema import compile_schema
from instar.kube.schema.structure.structural import Structural

V1, V2 = "g.io/v1", "g.io/v2"
T0, T1, T2 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"

STRING, INTEGER = Structural(type="string"), Structural(type="integer")
STRUCTURAL = Structural(
    type="object",
    properties={
        "spec": Structural(
            type="object",
            properties={
                "image": STRING,
                "replicas": INTEGER,
                "labels": Structural(type="object", additional=STRING),
                "args": Structural(type="array", items=STRING),
                "tags": Structural(type="array", items=STRING, list_type="set"),
                "ports": Structural(
                    type="array",
                    list_type="map",
                    list_map_keys=("port", "protocol"),
                    items=Structural(
                        type="object",
                        properties={
                            "port": INTEGER,
                            "protocol": Structural(type="string", default="TCP"),
                            "name": STRING,
                        },
                    ),
                ),
            },
        ),
        "status": Structural(type="object", preserve_unknown=True),
    },
)
SCHEMA = compile_schema(STRUCTURAL)
SCHEMAS = {V1: SCHEMA, V2: SCHEMA}


def thing(spec: Any = None, version: str = V1, **metadata: Any) -> dict[str, Any]:
    obj = {"apiVersion": version, "kind": "Thing", "metadata": {"name": "a", **metadata}}
    if spec is not None:
        obj["spec"] = spec
    return obj


def writer(manager: str, now: str = T0, subresource: str = "", version: str = V1) -> Writer:
    ignored = ignored_fields(subresource, version, {V1: True, V2: True})
    return Writer(manager, version, now, subresource, ignored)


def same_object(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """Strategy None: only the version changes."""
    return {**obj, "apiVersion": version}
