"""Table of per-kind flags of ``Strategy`` by which the verbs treat built-in kinds differently.

Read by ``builtin_resources.py``. Behaviour beyond a flag is a method of the kind's strategy.
"""

from __future__ import annotations

from collections.abc import Mapping

Place = tuple[str, str]
"""Group and plural."""

_RBAC = "rbac.authorization.k8s.io"
_STORAGE = "storage.k8s.io"
_RESOURCE = "resource.k8s.io"

_ADMISSION = "admissionregistration.k8s.io"
_ADMISSION_PLURALS = (
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
)

STRATEGY_FLAGS: Mapping[str, frozenset[Place]] = {
    "answers_deleted": frozenset(
        {
            ("", "pods"),
            ("", "services"),
            ("", "persistentvolumes"),
            ("", "persistentvolumeclaims"),
            ("", "podtemplates"),
            ("", "serviceaccounts"),
            ("", "resourcequotas"),
            ("", "namespaces"),
            (_STORAGE, "storageclasses"),
            (_STORAGE, "csidrivers"),
            (_STORAGE, "csinodes"),
            (_STORAGE, "volumeattachments"),
            (_STORAGE, "volumeattributesclasses"),
            (_RESOURCE, "resourceclaims"),
            (_RESOURCE, "resourceclaimtemplates"),
            (_RESOURCE, "resourceslices"),
            (_RESOURCE, "deviceclasses"),
        }
    ),
    "creates_on_update": frozenset(
        {
            ("", "services"),
            ("", "endpoints"),
            ("", "events"),
            ("", "limitranges"),
            ("events.k8s.io", "events"),
            ("coordination.k8s.io", "leases"),
            ("node.k8s.io", "runtimeclasses"),
            (_RBAC, "roles"),
            (_RBAC, "clusterroles"),
            (_RBAC, "rolebindings"),
            (_RBAC, "clusterrolebindings"),
        }
    ),
    "any_finalizer": frozenset(
        {
            ("", "events"),
            ("events.k8s.io", "events"),
            ("policy", "poddisruptionbudgets"),
            ("coordination.k8s.io", "leases"),
            ("apiregistration.k8s.io", "apiservices"),
            *((_ADMISSION, plural) for plural in _ADMISSION_PLURALS),
        }
    ),
    "orphans_by_default": frozenset({("", "replicationcontrollers"), ("batch", "jobs")}),
    "status_keeps_labels": frozenset({("apps", "deployments")}),
    "status_keeps_metadata": frozenset(
        {
            (_STORAGE, "volumeattachments"),
            ("flowcontrol.apiserver.k8s.io", "flowschemas"),
            ("apiregistration.k8s.io", "apiservices"),
            (_RESOURCE, "resourceclaims"),
            (_ADMISSION, "validatingadmissionpolicies"),
        }
    ),
}
