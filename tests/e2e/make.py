"""CRDs and objects the end-to-end tests share; each test has a group or a namespace of its own."""

from __future__ import annotations

from typing import Any

from instar.plain import Object

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


def version(name: str, *, storage: bool = True, served: bool = True, **more: Any) -> Object:
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "selectableFields": [{"jsonPath": ".spec.color"}],
        "additionalPrinterColumns": [
            {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        **more,
    }


def widget_crd(group: str, *versions: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "shortNames": ["wd"],
                "categories": ["all"],
            },
            "versions": list(versions) or [version("v1")],
            **spec,
        },
    }


def widget(group: str, name: str, at: str = "v1", **spec: Any) -> Object:
    return {
        "apiVersion": f"{group}/{at}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"color": "red", **spec},
    }
