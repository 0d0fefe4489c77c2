"""Resolves a ``service`` reference of a webhook to a host and port.

Used by ``dialer.py``. Outside a cluster ``<name>.<namespace>.svc`` has no DNS entry, so three
sources are tried in turn: mappings from the command line, Service objects (through a callback into
the registry), and DNS. Only the dialled address is resolved here; the certificate must still be
valid for ``<name>.<namespace>.svc``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol


class HostPort(NamedTuple):
    """Address to connect to."""

    host: str
    port: int


class ServiceKey(NamedTuple):
    """A service port; ``port`` None in a mapping stands for every port of the service."""

    namespace: str
    name: str
    port: int | None


class Unresolved(Exception):
    """A service has no address; the text is upstream's."""

    def __init__(self, text: str, advice: str = "") -> None:
        super().__init__(text)
        self.advice = advice


class Resolver(Protocol):
    """Finds the address of a webhook's service."""

    async def resolve(self, namespace: str, name: str, port: int) -> HostPort:
        """Return the address to dial. Raises ``Unresolved``."""
        ...


ServiceLookup = Callable[[str, str], Awaitable[Mapping[str, Any] | None]]
"""(namespace, name) -> the core/v1 Service object, or None."""


class ServiceResolver:
    """Tries static mappings, then Service objects, then the service's DNS name."""

    def __init__(
        self,
        mappings: Mapping[ServiceKey, HostPort] | None = None,
        lookup: ServiceLookup | None = None,
    ) -> None:
        self._mappings = dict(mappings or {})
        self._lookup = lookup

    async def resolve(self, namespace: str, name: str, port: int) -> HostPort:
        for wanted in (port, None):
            mapped = self._mappings.get(ServiceKey(namespace, name, wanted))
            if mapped is not None:
                return mapped
        service = await self._lookup(namespace, name) if self._lookup else None
        target = _service_target(service, name, port) if service is not None else None
        return target or HostPort(f"{name}.{namespace}.svc", port)


def parse_mapping(text: str) -> tuple[ServiceKey, HostPort]:
    """Parse ``NAMESPACE/NAME[:PORT]=HOST:PORT``; raises ``ValueError`` with a text for the user."""
    left, equals, right = text.partition("=")
    namespace, slash, rest = left.partition("/")
    name, colon, port = rest.partition(":")
    host, _, target_port = right.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    complete = equals and slash and namespace and name and host
    if not complete or (colon and not _is_port(port)) or not _is_port(target_port):
        raise ValueError(
            f'"{text}" is not a service mapping; expected NAMESPACE/NAME[:PORT]=HOST:PORT, '
            "for example default/converter=127.0.0.1:9443"
        )
    key = ServiceKey(namespace, name, int(port) if colon else None)
    return key, HostPort(host, int(target_port))


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 65536


def _service_target(service: Mapping[str, Any], name: str, port: int) -> HostPort | None:
    """Return upstream's choice of address; None for a service without one."""
    spec = service.get("spec") or {}
    kind = spec.get("type") or "ClusterIP"
    if kind == "ExternalName":
        return HostPort(str(spec.get("externalName", "")), port)
    if kind not in ("ClusterIP", "NodePort", "LoadBalancer"):
        raise Unresolved(f'unsupported service type "{kind}"')
    address = spec.get("clusterIP")
    if address == "None":
        raise Unresolved('cannot route to service with ClusterIP "None"')
    if not any(item.get("port") == port for item in spec.get("ports") or ()):
        raise Unresolved(f'no service port {port} found for service "{name}"')
    return HostPort(str(address), port) if address else None
