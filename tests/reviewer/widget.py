"""A CRD with one of everything, and how to change exactly one thing in it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from instar.base.json_values import Object
from tests.support import crds

Change = Callable[[Object], None]

_SCHEMA: Object = {
    "type": "object",
    "description": "A widget.",
    "required": ["spec"],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["image"],
            "properties": {
                "image": {"type": "string", "minLength": 1, "maxLength": 200},
                "size": {"type": "string", "enum": ["small", "large"]},
                "replicas": {
                    "type": "integer",
                    "format": "int32",
                    "default": 1,
                    "minimum": 0,
                    "maximum": 100,
                },
                "port": {"x-kubernetes-int-or-string": True},
                "name": {"type": "string", "pattern": "^[a-z0-9-]*$"},
                "note": {"type": "string", "nullable": True},
                "since": {"type": "string", "format": "date-time"},
                "share": {"type": "number"},
                "labels": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "maxProperties": 10,
                },
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "maxItems": 5,
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["name", "protocol"],
                        "properties": {
                            "name": {"type": "string"},
                            "protocol": {"type": "string"},
                            "number": {"type": "integer"},
                        },
                    },
                },
                "range": {
                    "type": "object",
                    "properties": {
                        "low": {"type": "integer"},
                        "high": {"type": "integer"},
                    },
                    "x-kubernetes-validations": [
                        {
                            "rule": "!has(self.low) || self.low >= 0",
                            "message": "low must not be negative",
                        }
                    ],
                },
                "source": {
                    "type": "object",
                    "properties": {
                        "git": {"type": "string"},
                        "oci": {"type": "string"},
                    },
                    "anyOf": [{"required": ["git"]}, {"required": ["oci"]}],
                },
                "extra": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {"ready": {"type": "integer"}},
        },
    },
}
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.ready"}


def _version(name: str) -> Object:
    return crds.version(
        name,
        deepcopy(_SCHEMA),
        subresources={"status": {}, "scale": _SCALE},
        additionalPrinterColumns=[{"name": "Size", "type": "string", "jsonPath": ".spec.size"}],
        selectableFields=[{"jsonPath": ".spec.size"}],
    )


WIDGET = crds.crd(
    _version("v1"),
    _version("v1beta1"),
    plural="widgets",
    kind="Widget",
    names={
        "singular": "widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
        "categories": ["all"],
    },
)


def widget() -> Object:
    return deepcopy(WIDGET)


def changed(change: Change) -> Object:
    """The widget after one change."""
    crd = widget()
    change(crd)
    return crd


def at(*tokens: str | int) -> Callable[[Object], Any]:
    """The place below ``spec``."""

    def find(crd: Object) -> Any:
        place: Any = crd["spec"]
        for token in tokens:
            place = place[token]
        return place

    return find


def fields(crd: Object, *path: str) -> list[Object]:
    """The node of a field in every version: schemas of the two versions stay equal."""
    found = []
    for version in crd["spec"]["versions"]:
        node = version["schema"]["openAPIV3Schema"]
        for name in path:
            node = node["items"] if name == "[]" else node["properties"][name]
        found.append(node)
    return found


def put(*path: str, **keywords: Any) -> Change:
    """Set keywords of a field in every version; ``None`` removes one, ``_`` stands for ``-``."""

    def change(crd: Object) -> None:
        for node in fields(crd, *path):
            for name, value in keywords.items():
                written = name if not name.startswith("x_") else name.replace("_", "-")
                if value is None:
                    node.pop(written, None)
                else:
                    node[written] = deepcopy(value)

    return change


def drop(*path: str) -> Change:
    def change(crd: Object) -> None:
        for node in fields(crd, *path[:-1]):
            del node["properties"][path[-1]]

    return change


def rename(old: tuple[str, ...], new: str) -> Change:
    def change(crd: Object) -> None:
        for node in fields(crd, *old[:-1]):
            node["properties"][new] = node["properties"].pop(old[-1])

    return change


def add(path: tuple[str, ...], schema: Object) -> Change:
    def change(crd: Object) -> None:
        for node in fields(crd, *path[:-1]):
            node["properties"][path[-1]] = deepcopy(schema)

    return change


def each_version(**keywords: Any) -> Change:
    def change(crd: Object) -> None:
        for version in crd["spec"]["versions"]:
            for name, value in keywords.items():
                if value is None:
                    version.pop(name, None)
                else:
                    version[name] = deepcopy(value)

    return change


def spec(**keywords: Any) -> Change:
    def change(crd: Object) -> None:
        crd["spec"].update(deepcopy(keywords))

    return change


def names(**keywords: Any) -> Change:
    def change(crd: Object) -> None:
        crd["spec"]["names"].update(deepcopy(keywords))

    return change


def version(position: int, **keywords: Any) -> Change:
    def change(crd: Object) -> None:
        crd["spec"]["versions"][position].update(deepcopy(keywords))

    return change
