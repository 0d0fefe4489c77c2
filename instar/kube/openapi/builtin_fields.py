"""Schema parts shared by the hand-written built-in schemas: root fields, times, conditions.

Used by ``builtin_crd.py`` and ``builtin_schemas.py``.
"""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.kube.openapi.models import API_VERSION, KIND
from instar.kube.openapi.naming import META_PREFIX
from instar.kube.openapi.published import MODEL_KEY
from instar.kube.openapi.schema_literals import integer, obj, text

ATOMIC_LIST: Object = {"x-kubernetes-list-type": "atomic"}


def root_schema(description: str, properties: Object, *required: str) -> Object:
    """Return the root of a schema: its own fields and those that every object has."""
    common = {
        "apiVersion": text(API_VERSION),
        "kind": text(KIND),
        "metadata": {"type": "object"},
    }
    return obj(description, {**common, **properties}, *required)


def time_schema(description: str) -> Object:
    return text(description, format="date-time", nullable=True, **{MODEL_KEY: f"{META_PREFIX}Time"})


def bytes_schema(description: str = "", **more: Any) -> Object:
    return text(description, format="byte", **more)


def condition_schema(description: str) -> Object:
    """Return a condition as newer APIs define it: every field but the generation is required."""
    return obj(
        description,
        {
            "lastTransitionTime": time_schema("When the status last changed."),
            "message": text("The reason for humans."),
            "observedGeneration": integer("The generation that the condition was observed at.", 64),
            "reason": text("The reason for machines."),
            "status": text("True, False or Unknown."),
            "type": text("Type of the condition."),
        },
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
    )


def legacy_condition_schema(description: str, *, generation: bool = False) -> Object:
    """Return a condition as older APIs define it: only type and status are required."""
    seen = {"observedGeneration": integer("The generation that the condition was observed at.", 64)}
    return obj(
        description,
        {
            "lastTransitionTime": time_schema("When the status last changed."),
            "message": text("The reason for humans."),
            **(seen if generation else {}),
            "reason": text("The reason for machines."),
            "status": text("True, False or Unknown."),
            "type": text("Type of the condition."),
        },
        "status",
        "type",
    )
