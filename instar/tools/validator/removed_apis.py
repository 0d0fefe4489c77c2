"""APIs that Kubernetes removed, and what to write instead.

Used by ``validate.py``. Kubernetes' deprecated API migration guide has the facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class RemovedApi(NamedTuple):
    removed: str
    """First release of Kubernetes that does not serve it."""
    replacement: str
    """The ``apiVersion`` to write; empty where there is none."""
    since: str
    """First release that serves the replacement."""
    note: str = ""
    """What else changes."""

    def advice(self, api_version: str, kind: str) -> str:
        gone = f"{api_version} {kind} was removed in Kubernetes {self.removed}"
        note = f": {self.note}" if self.note else ""
        if not self.replacement:
            return f"{gone}{note}"
        return f"{gone}; write {self.replacement}, served since {self.since}{note}"


_SELECTOR = "spec.selector is required and immutable"
_INGRESS = (
    "spec.backend is spec.defaultBackend, serviceName and servicePort are service.name and "
    "service.port, and each path needs pathType"
)
_SIDE_EFFECTS = "sideEffects and admissionReviewVersions are required"
_ADMISSION = "use Pod Security Admission (labels pod-security.kubernetes.io/… of namespaces)"
_FLOW = "assuredConcurrencyShares is nominalConcurrencyShares"


def _rows() -> Iterator[tuple[str, str, RemovedApi]]:
    """Yield the ``apiVersion``, the kinds and what became of them."""
    apps = RemovedApi("1.16", "apps/v1", "1.9", _SELECTOR)
    yield "extensions/v1beta1", "DaemonSet Deployment ReplicaSet", apps
    yield "apps/v1beta1", "Deployment ReplicaSet StatefulSet", apps
    yield "apps/v1beta2", "DaemonSet Deployment ReplicaSet StatefulSet", apps
    policy = RemovedApi("1.16", "networking.k8s.io/v1", "1.8")
    yield "extensions/v1beta1", "NetworkPolicy", policy
    for group in ("extensions", "networking.k8s.io"):
        ingress = RemovedApi("1.22", "networking.k8s.io/v1", "1.19", _INGRESS)
        yield f"{group}/v1beta1", "Ingress", ingress
    pods = RemovedApi("1.25", "", "", _ADMISSION)
    yield "extensions/v1beta1", "PodSecurityPolicy", pods
    yield "policy/v1beta1", "PodSecurityPolicy", pods
    for group, kinds, since, note in _GONE_IN_22:
        yield f"{group}/v1beta1", kinds, RemovedApi("1.22", f"{group}/v1", since, note)
    rbac = RemovedApi("1.22", "rbac.authorization.k8s.io/v1", "1.8")
    yield "rbac.authorization.k8s.io/v1alpha1", _ROLES, rbac
    for group, kinds, since, note in _GONE_IN_25:
        yield f"{group}/v1beta1", kinds, RemovedApi("1.25", f"{group}/v1", since, note)
    scaler = "HorizontalPodAutoscaler"
    yield "autoscaling/v2beta1", scaler, RemovedApi("1.25", "autoscaling/v2", "1.23", _METRICS)
    yield "autoscaling/v2beta2", scaler, RemovedApi("1.26", "autoscaling/v2", "1.23")
    capacity = RemovedApi("1.27", "storage.k8s.io/v1", "1.24")
    yield "storage.k8s.io/v1beta1", "CSIStorageCapacity", capacity
    for version, removed in (("v1beta1", "1.26"), ("v1beta2", "1.29"), ("v1beta3", "1.32")):
        flow = RemovedApi(removed, "flowcontrol.apiserver.k8s.io/v1", "1.29", _FLOW)
        kinds = "FlowSchema PriorityLevelConfiguration"
        yield f"flowcontrol.apiserver.k8s.io/{version}", kinds, flow


_ROLES = "ClusterRole ClusterRoleBinding Role RoleBinding"
_METRICS = "targetAverageUtilization is target.averageUtilization with target.type Utilization"
_REVIEWS = "LocalSubjectAccessReview SelfSubjectAccessReview SubjectAccessReview"
_GONE_IN_22 = (
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
        "1.16",
        _SIDE_EFFECTS,
    ),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "1.16",
        "each version has its own structural schema",
    ),
    ("apiregistration.k8s.io", "APIService", "1.10", ""),
    ("authentication.k8s.io", "TokenReview", "1.6", ""),
    ("authorization.k8s.io", _REVIEWS, "1.6", ""),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "1.19",
        "spec.signerName and spec.usages are required",
    ),
    ("coordination.k8s.io", "Lease", "1.14", ""),
    ("networking.k8s.io", "IngressClass", "1.19", ""),
    ("rbac.authorization.k8s.io", _ROLES, "1.8", ""),
    ("scheduling.k8s.io", "PriorityClass", "1.14", ""),
    ("storage.k8s.io", "CSIDriver", "1.19", ""),
    ("storage.k8s.io", "CSINode", "1.17", ""),
    ("storage.k8s.io", "StorageClass", "1.6", ""),
    ("storage.k8s.io", "VolumeAttachment", "1.13", ""),
)
_GONE_IN_25 = (
    ("batch", "CronJob", "1.21", ""),
    (
        "discovery.k8s.io",
        "EndpointSlice",
        "1.21",
        "topology is nodeName, zone and deprecatedTopology",
    ),
    ("events.k8s.io", "Event", "1.19", ""),
    ("node.k8s.io", "RuntimeClass", "1.20", ""),
    (
        "policy",
        "PodDisruptionBudget",
        "1.21",
        "an empty spec.selector selects every pod of the namespace",
    ),
)
REMOVED: Mapping[tuple[str, str], RemovedApi] = {
    (api_version, kind): gone for api_version, kinds, gone in _rows() for kind in kinds.split()
}
"""By ``apiVersion`` and kind."""
