"""APIServices of the moved group: where one routes, and the patch that routes it to instar. Pure.

``cluster.py`` reads and writes them."""

from __future__ import annotations

from enum import Enum

from instar.base.json_values import Object
from instar.kube.api.adoption import API_SERVICE, GROUP, VERSION

PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"


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
    conditions = (api_service.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)


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
