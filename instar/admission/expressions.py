"""The variables of admission's expressions: their types, for whoever compiles one.

Objects are of any type; what the server itself says (the request, a namespace) has fields that
are known, so that a misspelt one is found when the configuration is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from instar.cel.declaring import record
from instar.cel.library.authz import AUTHORIZER, RESOURCE_CHECK
from instar.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of

_KIND = record("kubernetes.GroupVersionKind", {"group": STRING, "version": STRING, "kind": STRING})
_RESOURCE = record(
    "kubernetes.GroupVersionResource", {"group": STRING, "version": STRING, "resource": STRING}
)
_USER = record(
    "kubernetes.UserInfo",
    {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    },
)
REQUEST = record(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_NAMESPACE_METADATA = record(
    "kubernetes.NamespaceMetadata",
    {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": list_of(STRING),
    },
)
NAMESPACE = record(
    "kubernetes.Namespace",
    {
        "metadata": _NAMESPACE_METADATA,
        "spec": record("kubernetes.NamespaceSpec", {"finalizers": list_of(STRING)}),
        "status": record("kubernetes.NamespaceStatus", {"phase": STRING}),
    },
)

VARIABLES: Mapping[str, Type] = {
    "object": DYN,
    "oldObject": DYN,
    "request": REQUEST,
    "namespaceObject": NAMESPACE,
    "authorizer": AUTHORIZER,
    "authorizer.requestResource": RESOURCE_CHECK,
}
"""What every expression of admission may name."""
