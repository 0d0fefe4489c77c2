"""Parts that several built-in schemas share."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.kube.openapi.models import API_VERSION, KIND
from instar.kube.openapi.naming import META_PREFIX
from instar.kube.openapi.published import MODEL_KEY
from instar.kube.openapi.schema_literals import integer, obj, text

ATOMIC_LIST: Object = {"x-kubernetes-list-type": "atomic"}


def kind_of_object(description: str, properties: Object, *required: str) -> Object:
    """The root of a schema: its own fields and those every object has."""
    common = {
        "apiVersion": text(API_VERSION),
        "kind": text(KIND),
        "metadata": {"type": "object"},
    }
    return obj(description, {**common, **properties}, *required)


def moment(description: str) -> Object:
    return text(description, format="date-time", nullable=True, **{MODEL_KEY: f"{META_PREFIX}Time"})


def data(description: str = "", **more: Any) -> Object:
    return text(description, format="byte", **more)


def condition(description: str) -> Object:
    """A condition as newer APIs write it: every field but the generation is required."""
    return obj(
        description,
        {
            "lastTransitionTime": moment("When the status last changed."),
            "message": text("The reason for humans."),
            "observedGeneration": integer("The generation this was seen at.", 64),
            "reason": text("The reason for machines."),
            "status": text("True, False or Unknown."),
            "type": text("What the condition is about."),
        },
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
    )


def loose_condition(description: str, *, generation: bool = False) -> Object:
    """A condition as older APIs write it: only type and status are required."""
    seen = {"observedGeneration": integer("The generation this was seen at.", 64)}
    return obj(
        description,
        {
            "lastTransitionTime": moment("When the status last changed."),
            "message": text("The reason for humans."),
            **(seen if generation else {}),
            "reason": text("The reason for machines."),
            "status": text("True, False or Unknown."),
            "type": text("What the condition is about."),
        },
        "status",
        "type",
    )
