"""The condition ``Available`` of an APIService: reasons and texts of kube-apiserver.

``availability.py`` calls it before and after it asks a backend. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.server.aggregation.routes import AVAILABLE, ApiRoute, BackendService, condition
from instar.server.aggregation.service_endpoints import ServiceObjects, has_endpoint


class Availability(NamedTuple):
    """Status, reason and message of the condition."""

    status: str
    reason: str
    message: str


LOCAL = Availability("True", "Local", "Local APIServices are always available")
PASSED = Availability("True", "Passed", "all checks passed")


def service_trouble(backend: BackendService, objects: ServiceObjects) -> Availability | None:
    """What is wrong with the objects around the backend; None if it can be asked."""
    place = f'service/{backend.name} in "{backend.namespace}"'
    service = objects.service(backend.namespace, backend.name)
    if service is None:
        return Availability("False", "ServiceNotFound", f"{place} is not present")
    spec = service.get("spec") or {}
    if (spec.get("type") or "ClusterIP") != "ClusterIP":
        return None
    ports = [port for port in spec.get("ports") or () if port.get("port") == backend.port]
    if not ports:
        text = f"{place} is not listening on port {backend.port}"
        return Availability("False", "ServicePortError", text)
    slices = objects.slices(backend.namespace, backend.name)
    if not slices:
        return Availability("False", "EndpointsNotFound", f"cannot find endpointslices for {place}")
    name = ports[0].get("name") or ""
    if not has_endpoint(slices, name):
        text = f'endpointslices for {place} have no addresses with port name "{name}"'
        return Availability("False", "MissingEndpoints", text)
    return None


def failed_check(message: str) -> Availability:
    return Availability("False", "FailedDiscoveryCheck", message)


def with_condition(obj: Mapping[str, Any], found: Availability, now: str) -> Object | None:
    """The APIService with the condition; None if it has it already. ``lastTransitionTime`` moves
    only with the status."""
    status = dict(obj.get("status") or {})
    before = condition(status)
    if before is not None and (
        (before.get("status"), before.get("reason", ""), before.get("message", "")) == tuple(found)
    ):
        return None
    since = now
    if before is not None and before.get("status") == found.status:
        since = before.get("lastTransitionTime", now)
    after = {
        "type": AVAILABLE,
        "status": found.status,
        "lastTransitionTime": since,
        "reason": found.reason,
        "message": found.message,
    }
    others = [one for one in status.get("conditions") or () if one.get("type") != AVAILABLE]
    return {**obj, "status": {**status, "conditions": [*others, after]}}


def probe_path(route: ApiRoute) -> str:
    """The path that a backend must answer to be available."""
    return route.prefix
