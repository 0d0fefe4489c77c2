"""Variables of admission expressions (``object``, ``request``, ``params`` …), their types and
order.

Called by ``compile.py`` and the policy programs. ``request`` and ``namespaceObject`` have fixed
types; objects and parameters are dynamic. Only type checking (``policies/type_checking.py``) uses
the types of schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from instar.kube.cel.host_types import record
from instar.kube.cel.library.authorizer import AUTHORIZER as AUTHORIZER_TYPE
from instar.kube.cel.library.authorizer import RESOURCE_CHECK
from instar.kube.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of

OBJECT: Final = "object"
OLD_OBJECT: Final = "oldObject"
REQUEST: Final = "request"
PARAMS: Final = "params"
NAMESPACE: Final = "namespaceObject"
AUTHORIZER: Final = "authorizer"
"""Name of the variable by which an expression checks permissions."""
REQUEST_AUTHORIZER: Final = "authorizer.requestResource"
"""Name of the same variable for the resource of the request."""
VARIABLES: Final = "variables"
ORDER = (
    OBJECT, OLD_OBJECT, REQUEST, PARAMS, NAMESPACE, AUTHORIZER, REQUEST_AUTHORIZER, VARIABLES,
)  # fmt: skip
"""The order in which every expression takes its values."""
VARIABLES_TYPE = "kubernetes.variables"

_TEXTS = list_of(STRING)
_LABELS = map_of(STRING, STRING)


def _all_of_type(type: Type, *names: str) -> dict[str, Type]:
    return dict.fromkeys(names, type)


_KIND = record("kubernetes.GroupVersionKind", _all_of_type(STRING, "group", "version", "kind"))
_RESOURCE = record(
    "kubernetes.GroupVersionResource", _all_of_type(STRING, "group", "version", "resource")
)
_USER = record(
    "kubernetes.UserInfo",
    {
        **_all_of_type(STRING, "username", "uid"),
        "groups": _TEXTS,
        "extra": map_of(STRING, _TEXTS),
    },
)
_REQUEST = record(
    "kubernetes.AdmissionRequest",
    {
        **_all_of_type(_KIND, "kind", "requestKind"),
        **_all_of_type(_RESOURCE, "resource", "requestResource"),
        **_all_of_type(
            STRING, "subResource", "requestSubResource", "name", "namespace", "operation"
        ),
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_METADATA = record(
    "kubernetes.NamespaceMetadata",
    {
        **_all_of_type(STRING, "name", "generateName", "namespace", "UID", "resourceVersion"),
        **_all_of_type(_LABELS, "labels", "annotations"),
        **_all_of_type(TIMESTAMP, "creationTimestamp", "deletionTimestamp"),
        **_all_of_type(INT, "deletionGracePeriodSeconds", "generation"),
        "finalizers": _TEXTS,
    },
)
_CONDITION = record(
    "kubernetes.NamespaceCondition",
    {
        **_all_of_type(STRING, "status", "type", "message", "reason"),
        "lastTransitionTime": TIMESTAMP,
    },
)
_NAMESPACE = record(
    "kubernetes.Namespace",
    {
        "metadata": _METADATA,
        "spec": record("kubernetes.NamespaceSpec", {"finalizers": _TEXTS}),
        "status": record(
            "kubernetes.NamespaceStatus", {"conditions": list_of(_CONDITION), "phase": STRING}
        ),
    },
)
_SHOWN_METADATA = frozenset(
    {
        *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "labels"),
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "annotations"),
        "finalizers",
    }
)


def declared_variables(
    *,
    params: bool,
    authorizer: bool = True,
    object_type: Type = DYN,
    params_type: Type = DYN,
) -> dict[str, Type]:
    """Return the variables that an expression may use, without the policy's own variables."""
    found: dict[str, Type] = {
        OBJECT: object_type,
        OLD_OBJECT: object_type,
        REQUEST: _REQUEST,
        NAMESPACE: _NAMESPACE,
    }
    if params:
        found[PARAMS] = params_type
    if authorizer:
        found |= {AUTHORIZER: AUTHORIZER_TYPE, REQUEST_AUTHORIZER: RESOURCE_CHECK}
    return found


def with_variables(names: Mapping[str, Type], variables: Mapping[str, Type]) -> dict[str, Type]:
    """Add the policy variables that are declared so far."""
    return {**names, VARIABLES: record(VARIABLES_TYPE, variables)}


def shown_namespace(namespace: Mapping[str, object] | None) -> dict[str, object] | None:
    """Return a namespace as expressions see it: without ownerReferences and managedFields."""
    if namespace is None:
        return None
    held = namespace.get("metadata")
    metadata = held if isinstance(held, dict) else {}
    return {
        "metadata": {name: value for name, value in metadata.items() if name in _SHOWN_METADATA},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }
