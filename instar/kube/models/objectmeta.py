"""``metadata`` of every object, as a schema, so that it is written like any other class."""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.models.from_schema import shape_of
from instar.kube.models.shapes import ModelShape

_TEXT: Object = {"type": "string"}
_TIME: Object = {"type": "string", "format": "date-time"}
_TEXTS: Object = {"type": "object", "additionalProperties": _TEXT}


def _said(node: Object, description: str) -> Object:
    return {**node, "description": description}


_OWNER: Object = {
    "type": "object",
    "description": "An object that this one belongs to: it is collected with its last owner.",
    "required": ["apiVersion", "kind", "name", "uid"],
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
        "controller": _said({"type": "boolean"}, "Whether it manages this object."),
        "blockOwnerDeletion": {"type": "boolean"},
    },
}
_MANAGED: Object = {
    "type": "object",
    "description": "Which fields somebody set, and when.",
    "properties": {
        "manager": _TEXT,
        "operation": _TEXT,
        "apiVersion": _said(_TEXT, "The version that fieldsV1 is written in."),
        "time": _TIME,
        "fieldsType": _TEXT,
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "subresource": _TEXT,
    },
}
_META: Object = {
    "type": "object",
    "description": "What every object has: its name, its labels, and what the server knows of it.",
    "properties": {
        "name": _TEXT,
        "generateName": _said(_TEXT, "The server makes a name that begins like this."),
        "namespace": _TEXT,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "uid": _said(_TEXT, "Set by the server, never again the same."),
        "resourceVersion": _said(_TEXT, "Set by the server: which state of the object this is."),
        "generation": _said({"type": "integer", "format": "int64"}, "Counts changes of the spec."),
        "creationTimestamp": {**_TIME, "nullable": True},
        "deletionTimestamp": _said(_TIME, "Set while it waits for its finalizers."),
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
        "finalizers": {"type": "array", "items": _TEXT},
        "ownerReferences": {"type": "array", "items": _OWNER},
        "managedFields": {"type": "array", "items": _MANAGED},
        "selfLink": _TEXT,
    },
}


def object_meta() -> ModelShape:
    return shape_of(_META)
