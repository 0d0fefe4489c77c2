"""Builds the bootstrap objects as plain values; pure functions.

Called by ``controller.py``, ``api_services.py`` and ``ip_addresses.py``; ``server_endpoints.py``
builds its own. ``writer.py`` stores them
and adds the timestamps of conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network

from instar.base.json_values import Object

ACCOUNT, AUTHORITY = "default", "kube-root-ca.crt"
AUTHENTICATION = "extension-apiserver-authentication"
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
MANAGED_BY, OUR_ALLOCATOR = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
_TRACKING = "kube-apiserver-legacy-service-account-token-tracking"
_DESCRIPTION = "kubernetes.io/description"
_AUTHORITY_TEXT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)
_PRIORITIES = {
    "": 18000, "apps": 17800, "events.k8s.io": 17750, "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600, "autoscaling": 17500, "batch": 17400,
    "certificates.k8s.io": 17300, "networking.k8s.io": 17200, "policy": 17100,
    "rbac.authorization.k8s.io": 17000, "storage.k8s.io": 16800, "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700, "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500, "node.k8s.io": 16300, "discovery.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100, "resource.k8s.io": 16200,
    "internal.apiserver.k8s.io": 16000,
}  # fmt: skip
_CUSTOM_PRIORITY, _CUSTOM_VERSION_PRIORITY = 1000, 100
_OTHER_PRIORITY, _STABLE_PRIORITY, _OTHER_VERSION_PRIORITY = 15000, 15, 9
_VERSION_PRIORITIES = {
    ("", "v1"): 1,
    ("admissionregistration.k8s.io", "v1beta1"): 12,
    ("autoscaling", "v2"): 30,
    ("coordination.k8s.io", "v1alpha2"): 12,
    ("coordination.k8s.io", "v1beta1"): 13,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1alpha3"): 1,
    ("resource.k8s.io", "v1beta2"): 15,
    ("storagemigration.k8s.io", "v1beta1"): 30,
}
"""Priority of a version within its group, where it is not that of its level."""


def account_object(namespace: str) -> Object:
    """Return the ServiceAccount ``default`` of a namespace."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": namespace},
    }


def authority_object(namespace: str, authority: str) -> Object:
    """Return the ConfigMap ``kube-root-ca.crt`` of a namespace."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": AUTHORITY,
            "namespace": namespace,
            "annotations": {_DESCRIPTION: _AUTHORITY_TEXT},
        },
        "data": {"ca.crt": authority},
    }


def system_objects(authentication: Mapping[str, str], today: str) -> Iterator[Object]:
    """Yield the ConfigMaps about this server: how aggregated servers recognise its clients and its
    front proxies, and the legacy token tracking date."""
    for name, data in (
        (AUTHENTICATION, dict(authentication)),
        (_TRACKING, {"since": today}),
    ):
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system"},
            "data": data,
        }


def address_object(address: str, namespace: str, name: str) -> Object:
    """Return the IPAddress of a Service."""
    family = "IPv6" if ":" in address else "IPv4"
    labels = {"ipaddress.kubernetes.io/ip-family": family, MANAGED_BY: OUR_ALLOCATOR}
    parent = {"resource": "services", "namespace": namespace, "name": name}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {"name": address, "labels": labels},
        "spec": {"parentRef": parent},
    }


def service_objects(port: int, network: IPv4Network) -> Iterator[Object]:
    """Yield the ``kubernetes`` Service and the network of Services."""
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": str(network[1]),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    }
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [str(network)]},
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "",
                    "message": "Kubernetes default Service CIDR is ready",
                }
            ]
        },
    }


def class_objects() -> Iterator[Object]:
    """Yield the system priority classes."""
    pods = "Used for system critical pods that must"
    for name, value, text in (
        (
            "system-cluster-critical",
            2_000_000_000,
            "run in the cluster, but can be moved to another node if necessary.",
        ),
        ("system-node-critical", 2_000_001_000, "not be moved from their current node."),
    ):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"{pods} {text}",
        }


def api_objects(group_versions: Iterable[tuple[str, str]]) -> Iterator[Object]:
    """Yield APIServices of the built-in (group, version)."""
    for group, version in group_versions:
        priority = _PRIORITIES.get(group, _OTHER_PRIORITY)
        unstable = "alpha" in version or "beta" in version
        level = _OTHER_VERSION_PRIORITY if unstable else _STABLE_PRIORITY
        among = _VERSION_PRIORITIES.get((group, version), level)
        yield _api_piece(group, version, "onstart", priority, among)


def custom_api_object(group: str, version: str) -> Object:
    """Return the APIService of a version that a CRD serves."""
    return _api_piece(group, version, "true", _CUSTOM_PRIORITY, _CUSTOM_VERSION_PRIORITY)


def _api_piece(group: str, version: str, managed: str, priority: int, among: int) -> Object:
    told = {
        "type": "Available",
        "status": "True",
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}", "labels": {AUTOMANAGED: managed}},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": priority,
            "versionPriority": among,
        },
        "status": {"conditions": [told]},
    }
