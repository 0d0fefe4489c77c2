"""CRDs and objects the end-to-end tests share; each test has a group or a namespace of its own."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from tests.support import crds

SPEC: Object = {
    "type": "object",
    "description": "What is wanted.",
    "required": ["color"],
    "properties": {
        "color": {"type": "string", "description": "The colour.", "enum": ["red", "green", "blue"]},
        "size": {"type": "integer", "minimum": 1},
        "replicas": {"type": "integer", "default": 1},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
            },
        },
    },
}
STATUS: Object = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "phase": {"type": "string"},
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
            },
        },
    },
}
SCHEMA: Object = {
    "type": "object",
    "description": "A widget for tests.",
    "properties": {"spec": SPEC, "status": STATUS},
}


SUBRESOURCES: Object = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}
COLUMNS: list[Object] = [
    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def version(name: str, *, storage: bool = True, served: bool = True, **more: Any) -> Object:
    return crds.version(
        name,
        SCHEMA,
        served=served,
        storage=storage,
        **{
            "subresources": SUBRESOURCES,
            "selectableFields": [{"jsonPath": ".spec.color"}],
            "additionalPrinterColumns": COLUMNS,
            **more,
        },
    )


def widget_crd(group: str, *versions: Object, **spec: Any) -> Object:
    names = {"singular": "widget", "shortNames": ["wd"], "categories": ["all"]}
    return crds.crd(
        *(versions or [version("v1")]),
        group=group,
        plural="widgets",
        kind="Widget",
        names=names,
        **spec,
    )


def widget(group: str, name: str, at: str = "v1", **spec: Any) -> Object:
    return {
        "apiVersion": f"{group}/{at}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"color": "red", **spec},
    }
