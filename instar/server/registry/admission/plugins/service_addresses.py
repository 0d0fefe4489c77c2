"""Allocator of cluster IPs and node ports of Services.

``server/lifecycle/composition.py`` adds it to the admission chain, which calls it when a Service is
created or updated. Allocations are read from the stored Services by an index that follows them; a
value given to a write in flight is reserved until the Service is stored or a time limit has passed.
Addresses and ports are claimed in the store as well, so that other servers do not give them to a
Service at the same moment (``node_port_claims.py`` has the claims of ports).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from enum import Enum, auto
from functools import partial
from ipaddress import IPv4Network, ip_address
from typing import Any, Protocol

from instar.base.errors import Internal, invalid
from instar.base.field_errors import FieldError
from instar.base.field_errors import invalid as wrong
from instar.base.json_values import Object
from instar.kube.builtin_rules.services import (
    gets_node_ports,
    has_cluster_ip,
    has_health_port,
    is_headless,
    may_have_node_ports,
)
from instar.server.registry.admission.plugins.node_port_claims import (
    NodePort,
    NodePortClaims,
    PortClaim,
)
from instar.server.registry.admission.plugins.service_networks import (
    random_addresses,
    service_networks,
    upper_first,
)
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.watchcache.collection import Change

NETWORK = IPv4Network("10.0.0.0/24")
NODE_PORTS = range(30000, 32768)
_IN_FLIGHT_SECONDS = 30.0
_TRIES = 64
_BEYOND_NODE_PORTS = 32768
_STATIC_PORTS = 86
_ALLOCATED = "provided port is already allocated"


class AddressClaim(Enum):
    """The outcome of claiming an address for a Service."""

    MADE = auto()
    SHARED = auto()
    """The same Service holds it already, by another request."""
    REFUSED = auto()


class StoreClaims(Protocol):
    """Claims addresses among all servers of a store."""

    async def take(self, address: str, owner: str, *, patient: bool) -> AddressClaim:
        """``patient``: wait for an address that is just becoming free."""
        ...

    async def give_back(self, address: str, owner: str) -> None: ...


class ServiceAddresses:
    def __init__(
        self,
        backend: Backend,
        network: IPv4Network = NETWORK,
        claims: StoreClaims | None = None,
        port_claims: NodePortClaims | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``network`` counts while there is no ServiceCIDR. Without ``claims`` only this process
        gives addresses, without ``port_claims`` only it gives ports."""
        self._network, self._claims, self._port_claims = network, claims, port_claims
        self._services = backend.collection(collection_prefix("", "services"))
        self._ranges = backend.collection(collection_prefix("networking.k8s.io", "servicecidrs"))
        self._backend, self._clock = backend, clock
        self._taken: dict[Hashable, set[str]] | None = None
        self._in_flight: dict[Hashable, tuple[float, str]] = {}
        self._released: dict[NodePort, tuple[str, int]] = {}
        """Node port → the Service that gave it up last, and the revision of that."""

    def allocate(self, operation: Operation) -> Awaitable[None] | None:
        serving, obj = operation.target.serving, operation.obj
        if (serving.group, serving.plural) != ("", "services") or obj is None:
            return None
        if operation.verb not in (Verb.CREATE, Verb.UPDATE) or operation.subresource:
            return None
        version, strategy = operation.target.version, serving.strategy
        if strategy.check_create(obj, version, lambda text: None):
            return None  # validation will reject it
        before = operation.old["spec"] if operation.old is not None else {}
        return self._give(operation, obj, before)

    async def _give(self, operation: Operation, obj: Object, before: Object) -> None:
        spec = obj["spec"]
        metadata = obj["metadata"]
        owner = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        found = _family_errors(spec)
        if not found and has_cluster_ip(spec):
            _set_families(spec)
            found = await self._give_address(operation, spec, before, owner)
        asked = set(_ports(spec))
        if not found and may_have_node_ports(spec):
            found = self._give_ports(spec, owner, operation.dry_run)
        if not found and has_health_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = self._free_port("TCP", owner, operation.dry_run)
        if not found and self._port_claims is not None and not operation.dry_run:
            found = await self._claim_ports(self._port_claims, operation, owner, asked)
        if found:
            raise invalid("", "Service", metadata.get("name", ""), found)

    async def _give_address(
        self, operation: Operation, spec: Object, before: Object, owner: str
    ) -> list[FieldError]:
        if is_headless(spec):
            return []
        given = spec.get("clusterIP")
        networks = service_networks(self._ranges, self._network)
        if not given:
            for address in random_addresses(networks):
                if not self._is_taken(address, owner) and await self._take(
                    address, owner, operation, patient=False
                ):
                    spec["clusterIP"], spec["clusterIPs"] = address, [address]
                    return []
            raise Internal("failed to allocate a serviceIP: range is full")
        if before.get("clusterIP") and has_cluster_ip(before):
            return []  # the same, or validation rejects the change
        if not any(ip_address(given) in network for network in networks):
            why = "the provided network does not match the current range"
        elif self._is_taken(given, owner) or not await self._take(
            given, owner, operation, patient=True
        ):
            why = "provided IP is already allocated"
        else:
            return []
        text = f"failed to allocate IP {given}: {why}"
        return [wrong("spec.clusterIPs", spec["clusterIPs"], text)]

    async def _take(self, address: str, owner: str, operation: Operation, *, patient: bool) -> bool:
        """Reserve a free address in this process, then claim it among all servers."""
        if operation.dry_run:
            return True
        self._reserve(address, owner, dry_run=False)
        if self._claims is None:
            return True
        claim = await self._claims.take(address, owner, patient=patient)
        if claim is AddressClaim.MADE:
            operation.undo.append(partial(self._give_back, self._claims, address, owner))
        return claim is not AddressClaim.REFUSED

    async def _give_back(self, claims: StoreClaims, address: str, owner: str) -> None:
        await claims.give_back(address, owner)
        self._in_flight.pop(address, None)

    def _give_ports(self, spec: Object, owner: str, dry_run: bool) -> list[FieldError]:
        for position, port in enumerate(spec.get("ports") or ()):
            protocol, wanted = port.get("protocol", "TCP"), port.get("nodePort")
            where = f"spec.ports[{position}].nodePort"
            if not wanted and not gets_node_ports(spec):
                continue
            if not wanted:
                port["nodePort"] = (
                    _imagined_port(spec) if dry_run else self._free_port(protocol, owner, dry_run)
                )
            elif wanted not in NODE_PORTS:
                text = "provided port is not in the valid range. The range of valid ports is "
                return [wrong(where, wanted, f"{text}{NODE_PORTS[0]}-{NODE_PORTS[-1]}")]
            elif self._is_taken(NodePort(protocol, wanted), owner):
                return [wrong(where, wanted, _ALLOCATED)]
            else:
                self._reserve(NodePort(protocol, wanted), owner, dry_run)
        return []

    async def _claim_ports(
        self, claims: NodePortClaims, operation: Operation, owner: str, asked: set[NodePort]
    ) -> list[FieldError]:
        """Claim the ports that the Service does not have yet, among all servers. Ports that another
        one has claimed are replaced, but for those that the client asked for."""
        spec = (operation.obj or {})["spec"]
        while places := [place for place in _ports(spec) if not self._holds(place, owner)]:
            refused = await claims.take(places, owner, self._was_released)
            if not refused:
                operation.undo.append(partial(self._give_ports_back, claims, places, owner))
                break
            for place, holder in refused.items():
                if place in asked:
                    return [_refused_port(spec, place)]
                self._reserve(place, holder, dry_run=False)
                _replace_port(spec, place, self._free_port(place.protocol, owner, dry_run=False))
        return []

    async def _give_ports_back(
        self, claims: NodePortClaims, places: Iterable[NodePort], owner: str
    ) -> None:
        await claims.give_back(places, owner)
        for place in places:
            self._in_flight.pop(place, None)

    def _holds(self, place: NodePort, owner: str) -> bool:
        return owner in self._index().get(place, ())

    def _was_released(self, claim: PortClaim) -> bool:
        owner, revision = self._released.get(claim.place, ("", 0))
        return owner == claim.owner and revision > claim.after

    def _free_port(self, protocol: str, owner: str, dry_run: bool) -> int:
        places = (NodePort(protocol, port) for port in upper_first(NODE_PORTS, _STATIC_PORTS))
        found = self._free(places, owner, dry_run)
        if found is None:
            raise Internal("failed to allocate a nodePort: range is full")
        port: int = found.number
        return port

    # Allocations --------------------------------------------------------------------------------

    def _free(self, places: Iterable[Hashable], owner: str, dry_run: bool) -> Any:
        """Return the first candidate that is not in use, not even by the same owner."""
        for place in places:
            if not self._is_taken(place, ""):
                self._reserve(place, owner, dry_run)
                return place
        return None

    def _is_taken(self, place: Hashable, owner: str) -> bool:
        until, holder = self._in_flight.get(place, (0.0, ""))
        if holder and holder != owner and until > self._clock():
            return True
        return bool(self._index().get(place, set()) - {owner})

    def _reserve(self, place: Hashable, owner: str, dry_run: bool) -> None:
        if dry_run:
            return
        now = self._clock()
        if len(self._in_flight) > _TRIES:
            self._in_flight = {k: v for k, v in self._in_flight.items() if v[0] > now}
        self._in_flight[place] = (now + _IN_FLIGHT_SECONDS, owner)

    def _index(self) -> dict[Hashable, set[str]]:
        """Return allocation → owners, built when the first Service is written and kept current."""
        if self._taken is None:
            self._taken = {}
            for entry in self._services.entries.values():
                self._note(entry, added=True)
            self._services.listeners.insert(0, self._changed)
            self._backend.cache.on_reset(self._forget)
        return self._taken

    def _forget(self) -> None:
        if self._taken is not None:
            self._taken.clear()
            for entry in self._services.entries.values():
                self._note(entry, added=True)

    def _changed(self, change: Change[CacheEntry]) -> None:
        if change.old is not None:
            self._note(change.old, added=False)
        if change.new is not None:
            self._note(change.new, added=True)
        if change.old is not None:
            self._note_released(change.old, change.revision)

    def _note_released(self, entry: CacheEntry, revision: int) -> None:
        if self._port_claims is None:
            return
        try:
            spec = entry.decode().get("spec") or {}
        except UnreadableEntry:
            return
        for place in _ports(spec):
            if not self._holds(place, entry.suffix):
                self._released[place] = (entry.suffix, revision)

    def _note(self, entry: CacheEntry, *, added: bool) -> None:
        assert self._taken is not None
        try:
            spec = entry.decode().get("spec") or {}
        except UnreadableEntry:
            return
        for place in _places(spec):
            holders = self._taken.setdefault(place, set())
            if added:
                holders.add(entry.suffix)
                self._in_flight.pop(place, None)
            else:
                holders.discard(entry.suffix)
                if not holders:
                    del self._taken[place]


def _places(spec: Object) -> Iterable[Hashable]:
    yield from (address for address in spec.get("clusterIPs") or () if address != "None")
    yield from _ports(spec)


def _ports(spec: Object) -> Iterable[NodePort]:
    """Yield the node ports of a Service, without those that are still to be given."""
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            yield NodePort(port.get("protocol", "TCP"), port["nodePort"])
    if spec.get("healthCheckNodePort"):
        yield NodePort("TCP", spec["healthCheckNodePort"])


def _refused_port(spec: Object, place: NodePort) -> FieldError:
    for position, port in enumerate(spec.get("ports") or ()):
        if NodePort(port.get("protocol", "TCP"), port.get("nodePort", 0)) == place:
            return wrong(f"spec.ports[{position}].nodePort", place.number, _ALLOCATED)
    return wrong("spec.healthCheckNodePort", place.number, _ALLOCATED)


def _replace_port(spec: Object, place: NodePort, number: int) -> None:
    for port in spec.get("ports") or ():
        if NodePort(port.get("protocol", "TCP"), port.get("nodePort", 0)) == place:
            port["nodePort"] = number
            return
    spec["healthCheckNodePort"] = number


def _set_families(spec: Object) -> None:
    bare = is_headless(spec) and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = "RequireDualStack" if bare else "SingleStack"
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4", "IPv6"] if bare else ["IPv4"]


def _family_errors(spec: Object) -> list[FieldError]:
    """Return errors for IP families: this server has one family, as clusters have by default."""
    if not has_cluster_ip(spec) or (is_headless(spec) and not spec.get("selector")):
        return []
    found = [
        wrong(f"spec.ipFamilies[{position}]", family, "not configured on this cluster")
        for position, family in enumerate(spec.get("ipFamilies") or ())
        if family != "IPv4"
    ]
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        found.append(wrong("spec.ipFamilyPolicy", "RequireDualStack", text))
    return found


def _imagined_port(spec: Object) -> int:
    """Return a port for a dry run, which reserves none: beyond the range, as upstream's."""
    given = [port.get("nodePort") or 0 for port in spec["ports"]]
    return max(_BEYOND_NODE_PORTS, *given) + 1
