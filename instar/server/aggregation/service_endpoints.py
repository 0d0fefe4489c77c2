"""Where the Service of a backend is reached, from Service and EndpointSlice objects.

``availability.py`` and ``backends.py`` call it. Pure but for the random choice of an endpoint. The
error texts are kube-apiserver's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from instar.base.json_values import Object
from instar.server.aggregation.routes import BackendService
from instar.wire.webhooks.resolver import HostPort, ServiceKey

SERVICE_LABEL = "kubernetes.io/service-name"
"""Label of an EndpointSlice: the name of its Service."""
_WITH_ADDRESS = ("ClusterIP", "NodePort", "LoadBalancer")
OURSELVES = ("default", "kubernetes", 443)
"""The Service that stands for this server."""


class Unroutable(Exception):
    """A Service has no address; the text is kube-apiserver's."""


class ServiceObjects(Protocol):
    """Reads the stored Services and EndpointSlices."""

    def service(self, namespace: str, name: str) -> Object | None: ...

    def slices(self, namespace: str, name: str) -> Sequence[Object]:
        """The EndpointSlices of a Service."""
        ...


class ServiceRouting(NamedTuple):
    """How Services are resolved, by the flags of the server."""

    mappings: Mapping[ServiceKey, HostPort]
    """Addresses given by ``--service``: they come before any object."""
    by_endpoints: bool = False
    """Whether a ready endpoint is dialled instead of the cluster IP."""
    own_address: Callable[[], HostPort | None] = lambda: None
    """The address of this server, once it listens."""

    def mapped(self, backend: BackendService) -> HostPort | None:
        for port in (backend.port, None):
            found = self.mappings.get(ServiceKey(backend.namespace, backend.name, port))
            if found is not None:
                return found
        return None

    def resolve(self, backend: BackendService, objects: ServiceObjects) -> HostPort:
        """The address to dial. Raises ``Unroutable``."""
        mapped = self.mapped(backend)
        if mapped is None and (backend.namespace, backend.name, backend.port) == OURSELVES:
            mapped = self.own_address()
        if mapped is not None:
            return mapped
        service = objects.service(backend.namespace, backend.name)
        if service is None:
            raise Unroutable(f'service "{backend.name}" not found')
        if not self.by_endpoints:
            return _cluster_address(service, backend)
        slices = objects.slices(backend.namespace, backend.name)
        return _endpoint_address(service, slices, backend)


def _cluster_address(service: Mapping[str, Any], backend: BackendService) -> HostPort:
    spec = service.get("spec") or {}
    kind = spec.get("type") or "ClusterIP"
    if kind == "ClusterIP" and spec.get("clusterIP") == "None":
        raise Unroutable('cannot route to service with ClusterIP "None"')
    if kind in _WITH_ADDRESS:
        _port_of(spec, backend)
        return HostPort(str(spec.get("clusterIP") or ""), backend.port)
    if kind == "ExternalName":
        return HostPort(str(spec.get("externalName") or ""), backend.port)
    raise Unroutable(f'unsupported service type "{kind}"')


def _endpoint_address(
    service: Mapping[str, Any], slices: Sequence[Object], backend: BackendService
) -> HostPort:
    spec = service.get("spec") or {}
    kind = spec.get("type") or "ClusterIP"
    if kind not in _WITH_ADDRESS:
        raise Unroutable(f'unsupported service type "{kind}"')
    port_name = _port_of(spec, backend).get("name") or ""
    preferred = next(iter(spec.get("ipFamilies") or ()), "")
    shuffled = random.sample(slices, len(slices))
    shuffled.sort(key=lambda one: one.get("addressType") != preferred)
    for each in shuffled:
        port = _port_number(each, port_name)
        ready = [one for one in each.get("endpoints") or () if is_ready(one)]
        if port is not None and ready:
            return HostPort(str(random.choice(ready)["addresses"][0]), port)
    raise Unroutable(f'no endpoints available for service "{backend.name}"')


def _port_of(spec: Mapping[str, Any], backend: BackendService) -> Mapping[str, Any]:
    for port in spec.get("ports") or ():
        if port.get("port") == backend.port:
            found: Mapping[str, Any] = port
            return found
    raise Unroutable(f'no service port {backend.port} found for service "{backend.name}"')


def _port_number(slice: Mapping[str, Any], name: str) -> int | None:
    numbers = (
        port["port"]
        for port in slice.get("ports") or ()
        if (port.get("name") or "") == name and port.get("port") is not None
    )
    return next(numbers, None)


def is_ready(endpoint: Mapping[str, Any]) -> bool:
    """Whether an endpoint takes requests; without the condition it does."""
    ready = (endpoint.get("conditions") or {}).get("ready")
    return (ready is None or ready is True) and bool(endpoint.get("addresses"))


def has_endpoint(slices: Iterable[Mapping[str, Any]], port_name: str) -> bool:
    """Whether a slice has a ready endpoint and the port."""
    return any(
        any(is_ready(one) for one in each.get("endpoints") or ())
        and _port_number(each, port_name) is not None
        for each in slices
    )
