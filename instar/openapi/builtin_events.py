"""Events, in their two spellings: core/v1 and events.k8s.io/v1."""

from __future__ import annotations

from instar.openapi.builtin_fields import kind_of_object, moment, object_reference, precise_moment
from instar.openapi.shapes import integer, obj, text
from instar.plain import Object


def _source() -> Object:
    return obj(
        "Who reported the event.",
        {"component": text("Name of the reporter."), "host": text("Where the reporter runs.")},
    )


def _series(*required: str) -> Object:
    return obj(
        "How often the event happened again.",
        {
            "count": integer("Number of times so far."),
            "lastObservedTime": precise_moment("When it last happened."),
        },
        *required,
    )


def _common() -> Object:
    return {
        "action": text("What was done or failed."),
        "eventTime": precise_moment("When it first happened."),
        "reason": text("Why, for machines."),
        "related": object_reference("A second object that is concerned."),
        "reportingInstance": text("Which instance of the controller reported it."),
        "type": text("Normal or Warning."),
    }


CORE_EVENT = kind_of_object(
    "Something that happened to an object; kept for a limited time.",
    {
        **_common(),
        "count": integer("How often it happened."),
        "firstTimestamp": moment("When it was first seen."),
        "involvedObject": object_reference("The object it happened to."),
        "lastTimestamp": moment("When it was last seen."),
        "message": text("What happened, for humans."),
        "reportingComponent": text("Name of the controller that reported it."),
        "series": _series(),
        "source": _source(),
    },
    "metadata",
    "involvedObject",
)

EVENT = kind_of_object(
    "Something that happened to an object; kept for a limited time.",
    {
        **_common(),
        "deprecatedCount": integer("count of the core form."),
        "deprecatedFirstTimestamp": moment("firstTimestamp of the core form."),
        "deprecatedLastTimestamp": moment("lastTimestamp of the core form."),
        "deprecatedSource": _source(),
        "note": text("What happened, for humans."),
        "regarding": object_reference("The object it happened to."),
        "reportingController": text("Name of the controller that reported it."),
        "series": _series("count", "lastObservedTime"),
    },
    "eventTime",
)
