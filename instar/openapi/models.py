"""The models every document shares: object metadata, Status, delete options, Scale.

References are bare model names; ``Dialect.render`` spells them for v2 or v3.
"""

from __future__ import annotations

from collections.abc import Mapping

from instar.openapi.naming import META_PREFIX, SCALE_MODEL
from instar.openapi.shapes import array, boolean, integer, list_by, obj, text, text_map, texts
from instar.plain import Object

API_VERSION = "The group and version this object is written in."
KIND = "The kind of object this is, in CamelCase; it cannot change."
OBJECT_META = "Name, labels and the other metadata every object has."
LIST_META = "Metadata of the list: its version and where to continue."


def _meta(name: str, description: str = "") -> Object:
    ref: Object = {"$ref": META_PREFIX + name}
    return {"description": description, **ref} if description else ref


def _type_meta() -> Object:
    return {"apiVersion": text(API_VERSION), "kind": text(KIND)}


def _gvk(group: str, version: str, kind: str) -> Object:
    return {"x-kubernetes-group-version-kind": [{"group": group, "kind": kind, "version": version}]}


_OWNER = obj(
    "An object this one belongs to; when all owners are gone, so is the object.",
    {
        "apiVersion": text("Group and version of the owner."),
        "blockOwnerDeletion": boolean("Keep the owner until this object is gone."),
        "controller": boolean("The owner is the one that manages this object."),
        "kind": text("Kind of the owner."),
        "name": text("Name of the owner."),
        "uid": text("Unique id of the owner."),
    },
    "apiVersion",
    "kind",
    "name",
    "uid",
    **{"x-kubernetes-map-type": "atomic"},
)

_MANAGED_FIELDS = obj(
    "The fields one manager set, and how.",
    {
        "apiVersion": text("The version the field names belong to."),
        "fieldsType": text("The form of fieldsV1; always FieldsV1."),
        "fieldsV1": _meta("FieldsV1", "The set of fields, as nested keys."),
        "manager": text("Who set the fields."),
        "operation": text("Apply or Update."),
        "subresource": text("The subresource written through, if any."),
        "time": _meta("Time", "When the set last changed."),
    },
)

_OBJECT_META = obj(
    "Metadata every stored object has.",
    {
        "annotations": text_map("Free notes for tools; not used to select objects."),
        "creationTimestamp": _meta("Time", "When the server created the object."),
        "deletionGracePeriodSeconds": integer("Seconds granted for a graceful end.", 64),
        "deletionTimestamp": _meta("Time", "When deletion was asked for; set by the server."),
        "finalizers": texts(
            "Names that must be removed before the object can go away.",
            **{"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
        ),
        "generateName": text("A prefix from which the server makes a unique name."),
        "generation": integer("Counts the changes of the desired state.", 64),
        "labels": text_map("Keys and values by which objects are selected."),
        "managedFields": array(
            _meta("ManagedFieldsEntry"),
            "Who set which fields.",
            **{"x-kubernetes-list-type": "atomic"},
        ),
        "name": text("Unique within the namespace; cannot change."),
        "namespace": text("The space in which the name is unique; cannot change."),
        "ownerReferences": array(
            _meta("OwnerReference"),
            "Objects this one belongs to.",
            **list_by("uid", merge="uid"),
        ),
        "resourceVersion": text("Opaque mark of this state of the object."),
        "selfLink": text("No longer filled in."),
        "uid": text("Unique over time and space; set by the server."),
    },
)

_LIST_META = obj(
    "Metadata of a list.",
    {
        "continue": text("Send it back to get the next page."),
        "remainingItemCount": integer("How many items follow this page, if known.", 64),
        "resourceVersion": text("Opaque mark of the state that was listed."),
        "selfLink": text("No longer filled in."),
    },
)

_STATUS = obj(
    "The outcome of a request that returns no object.",
    {
        **_type_meta(),
        "code": integer("HTTP status code."),
        "details": _meta("StatusDetails", "More about the reason."),
        "message": text("The outcome for humans."),
        "metadata": _meta("ListMeta", LIST_META),
        "reason": text("The outcome for machines, one word."),
        "status": text("Success or Failure."),
    },
    **_gvk("", "v1", "Status"),
)

_STATUS_DETAILS = obj(
    "What a Status is about.",
    {
        "causes": array(_meta("StatusCause"), "The single problems behind a failure."),
        "group": text("Group of the resource."),
        "kind": text("Kind or resource concerned."),
        "name": text("Name of the object."),
        "retryAfterSeconds": integer("How long to wait before another attempt."),
        "uid": text("Unique id of the object."),
    },
)

_STATUS_CAUSE = obj(
    "One problem of several.",
    {
        "field": text("Path of the field that caused it."),
        "message": text("The problem for humans."),
        "reason": text("The problem for machines."),
    },
)

_DELETE_OPTIONS = obj(
    "How to delete.",
    {
        **_type_meta(),
        "dryRun": texts("`All`: do everything but store the result."),
        "gracePeriodSeconds": integer("Seconds until the object is removed; 0 is at once.", 64),
        "ignoreStoreReadErrorWithClusterBreakingPotential": boolean(
            "Delete even what cannot be read; finalizers are not honoured."
        ),
        "orphanDependents": boolean("Deprecated; see propagationPolicy."),
        "preconditions": _meta("Preconditions", "Delete only if these hold."),
        "propagationPolicy": text("Orphan, Background or Foreground."),
    },
    **_gvk("", "v1", "DeleteOptions"),
)

_PRECONDITIONS = obj(
    "What must be true of an object before it is deleted.",
    {
        "resourceVersion": text("The resourceVersion it must have."),
        "uid": text("The uid it must have."),
    },
)

_SCALE = obj(
    "The number of replicas of an object, asked for and seen.",
    {
        **_type_meta(),
        "metadata": _meta("ObjectMeta", OBJECT_META),
        "spec": {"$ref": f"{SCALE_MODEL}Spec", "description": "What is asked for."},
        "status": {"$ref": f"{SCALE_MODEL}Status", "description": "What is."},
    },
    **_gvk("autoscaling", "v1", "Scale"),
)

_SCALE_STATUS = obj(
    "What is.",
    {
        "replicas": integer("The number of replicas that exist."),
        "selector": text("Label selector of the replicas, in its text form."),
    },
    "replicas",
)

SHARED: Mapping[str, Object] = {
    f"{META_PREFIX}DeleteOptions": _DELETE_OPTIONS,
    f"{META_PREFIX}FieldsV1": {"description": "A set of fields as nested keys.", "type": "object"},
    f"{META_PREFIX}ListMeta": _LIST_META,
    f"{META_PREFIX}ManagedFieldsEntry": _MANAGED_FIELDS,
    f"{META_PREFIX}ObjectMeta": _OBJECT_META,
    f"{META_PREFIX}OwnerReference": _OWNER,
    f"{META_PREFIX}Patch": {"description": "A patch in the form asked for.", "type": "object"},
    f"{META_PREFIX}Preconditions": _PRECONDITIONS,
    f"{META_PREFIX}Status": _STATUS,
    f"{META_PREFIX}StatusCause": _STATUS_CAUSE,
    f"{META_PREFIX}StatusDetails": _STATUS_DETAILS,
    f"{META_PREFIX}Time": text("A moment, as RFC 3339 writes it.", format="date-time"),
}

SCALE: Mapping[str, Object] = {
    SCALE_MODEL: _SCALE,
    f"{SCALE_MODEL}Spec": obj(
        "What is asked for.", {"replicas": integer("The number of replicas wanted.")}
    ),
    f"{SCALE_MODEL}Status": _SCALE_STATUS,
}


def list_model(item_model: str, group: str, version: str, list_kind: str, kind: str) -> Object:
    return obj(
        f"A list of {kind} objects.",
        {
            "apiVersion": text(API_VERSION),
            "items": array({"$ref": item_model}, "The objects, in the order of their names."),
            "kind": text(KIND),
            "metadata": _meta("ListMeta", LIST_META),
        },
        "items",
        **_gvk(group, version, list_kind),
    )
