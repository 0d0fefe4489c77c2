"""Schema of ``metadata``, so that ObjectMeta is generated like any other class.

Called by ``modules.py``.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.models.from_schema import shape_of
from instar.kube.models.shapes import ModelShape

_TEXT: Object = {"type": "string"}
_TIME: Object = {"type": "string", "format": "date-time"}
_TEXTS: Object = {"type": "object", "additionalProperties": _TEXT}


def _with_description(node: Object, description: str) -> Object:
    return {**node, "description": description}


_OWNER: Object = {
    "type": "object",
    "description": "An owner of this object, which is deleted after its last owner.",
    "required": ["apiVersion", "kind", "name", "uid"],
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
        "controller": _with_description({"type": "boolean"}, "Whether it manages this object."),
        "blockOwnerDeletion": {"type": "boolean"},
    },
}
_MANAGED: Object = {
    "type": "object",
    "description": "The fields that a manager set, and when.",
    "properties": {
        "manager": _TEXT,
        "operation": _TEXT,
        "apiVersion": _with_description(_TEXT, "The version that fieldsV1 is written in."),
        "time": _TIME,
        "fieldsType": _TEXT,
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "subresource": _TEXT,
    },
}
_META: Object = {
    "type": "object",
    "description": "Metadata of every object: its name, its labels, and fields set by the server.",
    "properties": {
        "name": _TEXT,
        "generateName": _with_description(_TEXT, "Prefix from which the server generates a name."),
        "namespace": _TEXT,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "uid": _with_description(_TEXT, "Set by the server, unique over time."),
        "resourceVersion": _with_description(
            _TEXT, "Set by the server: identifies this state of the object."
        ),
        "generation": _with_description(
            {"type": "integer", "format": "int64"}, "Counts changes of the spec."
        ),
        "creationTimestamp": {**_TIME, "nullable": True},
        "deletionTimestamp": _with_description(
            _TIME, "Set while the object waits for its finalizers."
        ),
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
        "finalizers": {"type": "array", "items": _TEXT},
        "ownerReferences": {"type": "array", "items": _OWNER},
        "managedFields": {"type": "array", "items": _MANAGED},
        "selfLink": _TEXT,
    },
}


def object_meta() -> ModelShape:
    return shape_of(_META)
