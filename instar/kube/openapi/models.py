"""Models that every OpenAPI document shares: ObjectMeta, Status, DeleteOptions, Scale, lists.

Called by ``documents.py``. References are bare model names; ``Dialect.render`` writes them for v2
or v3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.base.json_values import Object
from instar.kube.openapi.naming import META_PREFIX, SCALE_MODEL
from instar.kube.openapi.schema_literals import array, boolean, integer, list_by, mapping, obj, text

# Descriptions begin with the texts that users of kubectl explain know.
API_VERSION = (
    "APIVersion defines the versioned schema of this representation of an object: the group and "
    "version it is written in."
)
KIND = (
    "Kind is a string value representing the REST resource this object represents, in CamelCase; "
    "it cannot change."
)
OBJECT_META = "Standard object's metadata: name, labels and what else every object has."
LIST_META = "Standard list metadata: the version of the list and where to continue."


def _meta(name: str, description: str = "", **more: Any) -> Object:
    ref: Object = {"$ref": META_PREFIX + name, **more}
    return {"description": description, **ref} if description else ref


def _items(name: str) -> Object:
    """Return the schema of list items that are models; a missing item is empty."""
    return _meta(name, default={})


def _texts(description: str, **more: Any) -> Object:
    return array(dict(_TEXT), description, **more)


def _text_map(description: str) -> Object:
    return mapping(dict(_TEXT), description)


_TEXT: Object = {"type": "string", "default": ""}
_ATOMIC: Object = {"x-kubernetes-list-type": "atomic"}


def _type_meta() -> Object:
    return {"apiVersion": text(API_VERSION), "kind": text(KIND)}


def _gvk(group: str, version: str, kind: str) -> Object:
    return {"x-kubernetes-group-version-kind": [{"group": group, "kind": kind, "version": version}]}


_OWNER = obj(
    "OwnerReference contains enough information to let you identify an owning object; when all "
    "owners are gone, so is the object.",
    {
        "apiVersion": text("API version of the referent.", default=""),
        "blockOwnerDeletion": boolean("If true, the owner stays until this object is gone."),
        "controller": boolean("If true, the owner is the one that manages this object."),
        "kind": text("Kind of the referent.", default=""),
        "name": text("Name of the referent.", default=""),
        "uid": text("UID of the referent.", default=""),
    },
    "apiVersion",
    "kind",
    "name",
    "uid",
    **{"x-kubernetes-map-type": "atomic"},
)

_MANAGED_FIELDS = obj(
    "ManagedFieldsEntry is a manager, the fields it set, and its operation.",
    {
        "apiVersion": text("APIVersion defines the version the field names belong to."),
        "fieldsType": text("FieldsType is the form of fieldsV1; always FieldsV1."),
        "fieldsV1": _meta("FieldsV1", "FieldsV1 holds the set of fields, as nested keys."),
        "manager": text("Manager is the name of the program that set the fields."),
        "operation": text("Operation is Apply or Update."),
        "subresource": text("Subresource is the one written through, if any."),
        "time": _meta("Time", "Time is when the set last changed."),
    },
)

_OBJECT_META = obj(
    "ObjectMeta is metadata that all persisted resources must have.",
    {
        "annotations": _text_map(
            "Annotations is an unstructured key value map: free notes for tools, not used to "
            "select objects."
        ),
        "creationTimestamp": _meta(
            "Time", "CreationTimestamp is a timestamp of when the server created the object."
        ),
        "deletionGracePeriodSeconds": integer(
            "Number of seconds allowed for this object to gracefully terminate.", 64
        ),
        "deletionTimestamp": _meta(
            "Time",
            "DeletionTimestamp is RFC 3339 date and time at which deletion was requested; set by "
            "the server.",
        ),
        "finalizers": _texts(
            "Must be empty before the object is deleted: controllers that still have work.",
            **{"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
        ),
        "generateName": text(
            "GenerateName is an optional prefix, used by the server, to make a unique name."
        ),
        "generation": integer(
            "A sequence number representing a specific generation of the desired state.", 64
        ),
        "labels": _text_map("Map of string keys and values by which objects are selected."),
        "managedFields": array(
            _items("ManagedFieldsEntry"),
            "ManagedFields maps managers to the fields they set.",
            **_ATOMIC,
        ),
        "name": text("Name must be unique within a namespace; it cannot change."),
        "namespace": text(
            "Namespace defines the space within which each name must be unique; it cannot change."
        ),
        "ownerReferences": array(
            _items("OwnerReference"),
            "List of objects depended by this object: those it belongs to.",
            **list_by("uid", merge="uid"),
        ),
        "resourceVersion": text("An opaque value that represents this state of the object."),
        "selfLink": text("Deprecated: selfLink is no longer filled in."),
        "uid": text(
            "UID is the unique in time and space value for this object; set by the server."
        ),
    },
)

_LIST_META = obj(
    "ListMeta describes metadata that lists have.",
    {
        "continue": text("continue may be set if there is more: send it back for the next page."),
        "remainingItemCount": integer(
            "remainingItemCount is the number of items that follow this page, if known.", 64
        ),
        "resourceVersion": text("String that identifies the state that was listed."),
        "selfLink": text("Deprecated: selfLink is no longer filled in."),
        "shardInfo": _meta("ShardInfo", "shardInfo is set when the list contains only one shard."),
    },
)

_SHARD_INFO = obj(
    "ShardInfo describes the shard selector that was applied to a list.",
    {"selector": text("selector is the shard selector of the request.", default="")},
    "selector",
)

_STATUS = obj(
    "The outcome of a request that returns no object.",
    {
        **_type_meta(),
        "code": integer("HTTP status code."),
        "details": _meta("StatusDetails", "More about the reason."),
        "message": text("The outcome for humans."),
        "metadata": _meta("ListMeta", LIST_META, default={}),
        "reason": text("The outcome for machines, one word."),
        "status": text("Success or Failure."),
    },
    **_gvk("", "v1", "Status"),
)

_STATUS_DETAILS = obj(
    "What a Status is about.",
    {
        "causes": array(_items("StatusCause"), "The single problems behind a failure.", **_ATOMIC),
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
        "dryRun": _texts("`All`: do everything but store the result.", **_ATOMIC),
        "gracePeriodSeconds": integer("Seconds until the object is removed; 0 is at once.", 64),
        "ignoreStoreReadErrorWithClusterBreakingPotential": boolean(
            "Delete even what cannot be read; finalizers are not honoured."
        ),
        "orphanDependents": boolean("Deprecated; see propagationPolicy."),
        "preconditions": _meta("Preconditions", "Delete only if these hold."),
        "propagationPolicy": text("Orphan, Background or Foreground."),
    },
)

_PRECONDITIONS = obj(
    "What must be true of an object before it is deleted.",
    {
        "resourceVersion": text("The resourceVersion it must have."),
        "uid": text("The uid it must have."),
    },
)

_SCALE = obj(
    "The desired and actual number of replicas of an object.",
    {
        **_type_meta(),
        "metadata": _meta("ObjectMeta", OBJECT_META, default={}),
        "spec": {
            "$ref": f"{SCALE_MODEL}Spec",
            "description": "Desired state.",
            "default": {},
        },
        "status": {"$ref": f"{SCALE_MODEL}Status", "description": "Observed state.", "default": {}},
    },
    **_gvk("autoscaling", "v1", "Scale"),
)

_SCALE_STATUS = obj(
    "Observed state.",
    {
        "replicas": integer("The number of replicas that exist.", default=0),
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
    f"{META_PREFIX}Patch": {
        "description": "A patch in the format of the request's content type.",
        "type": "object",
    },
    f"{META_PREFIX}Preconditions": _PRECONDITIONS,
    f"{META_PREFIX}ShardInfo": _SHARD_INFO,
    f"{META_PREFIX}Status": _STATUS,
    f"{META_PREFIX}StatusCause": _STATUS_CAUSE,
    f"{META_PREFIX}StatusDetails": _STATUS_DETAILS,
    f"{META_PREFIX}Time": text("A time in RFC 3339 format.", format="date-time"),
}

SCALE: Mapping[str, Object] = {
    SCALE_MODEL: _SCALE,
    f"{SCALE_MODEL}Spec": obj(
        "Desired state.", {"replicas": integer("The desired number of replicas.", default=0)}
    ),
    f"{SCALE_MODEL}Status": _SCALE_STATUS,
}


def list_model(
    item_model: str, group: str, version: str, list_kind: str, kind: str, selectable: Object
) -> Object:
    """Return the model of a list; ``selectable`` is the selectable-field extension of the item's
    model."""
    return obj(
        f"{list_kind} is a list of {kind}",
        {
            "apiVersion": text(API_VERSION),
            "items": array({"$ref": item_model}, f"List of {kind} objects, ordered by name."),
            "kind": text(KIND),
            "metadata": _meta("ListMeta", LIST_META),
        },
        "items",
        **_gvk(group, version, list_kind),
        **selectable,
    )
