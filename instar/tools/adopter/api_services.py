"""APIServices of the moved group: where one routes, and the patch that routes it to instar. Pure.

``cluster.py`` reads and writes them."""

from __future__ import annotations

from enum import Enum

from instar.base.json_values import Object
from instar.kube.api.adoption import API_SERVICE, GROUP, VERSION

PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
_GROUP_PRIORITY, _VERSION_PRIORITY = 1_000, 100
"""Priorities that kube-apiserver gives to the groups and versions of CRDs."""


class RoutedTo(Enum):
    """Where the requests for one group version go."""

    MAIN = "the main cluster"
    INSTAR = "instar"
    OTHER = "another server"


def service_of(api_service: Object) -> tuple[str, str, int] | None:
    """Return namespace, name and port; None where the main cluster answers itself."""
    service = (api_service.get("spec") or {}).get("service")
    if not service:
        return None
    return service["namespace"], service["name"], int(service.get("port") or 443)


def routed_to(api_service: Object | None, adoption: Object) -> RoutedTo:
    """``adoption`` is the APIService of instar's own API, whose Service is instar."""
    service = None if api_service is None else service_of(api_service)
    if service is None:
        return RoutedTo.MAIN
    return RoutedTo.INSTAR if service == service_of(adoption) else RoutedTo.OTHER


def is_available(api_service: Object) -> bool:
    """Return whether the condition Available of an APIService is True."""
    return _condition(api_service).get("status") == "True"


def why_unavailable(api_service: Object) -> str:
    """Return the message of the condition Available."""
    return str(_condition(api_service).get("message") or "it has no condition Available")


def _condition(api_service: Object) -> Object:
    conditions = (api_service.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "Available"), {})


def routing_patch(adoption: Object) -> Object:
    """Return the merge patch that routes a version to instar. Without the label kube-apiserver does
    not put its own back."""
    spec = adoption["spec"]
    return {
        "metadata": {"labels": {AUTOMANAGED: None}},
        "spec": {
            "service": spec["service"],
            "caBundle": spec.get("caBundle"),
            "insecureSkipTLSVerify": spec.get("insecureSkipTLSVerify"),
        },
    }


def version_service(group: str, version: str, adoption: Object) -> Object:
    """Return the APIService that routes a version to instar which has none yet."""
    routed = routing_patch(adoption)["spec"]
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": _GROUP_PRIORITY,
            "versionPriority": _VERSION_PRIORITY,
            **{name: value for name, value in routed.items() if value is not None},
        },
    }


def adoption_service(namespace: str, name: str, port: int, ca_bundle: str) -> Object:
    """Return the APIService of instar's own API."""
    trust = {"caBundle": ca_bundle} if ca_bundle else {"insecureSkipTLSVerify": True}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": API_SERVICE},
        "spec": {
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": namespace, "name": name, "port": port},
            **trust,
        },
    }
