"""Bootstrap controller: creates the cluster's default objects, and those of each new namespace.

Started by ``server/lifecycle/lifetime.py`` once the server listens; only the leader acts. Existing
objects are left unchanged, except the ConfigMaps with the cluster's CA, which are updated when the
server has another CA. Requests never wait for the controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from itertools import islice

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.server.registry.admission.plugins.namespace_lifecycle import is_terminating
from instar.server.registry.controllers.bootstrap.api_services import CustomApiServices, put_back
from instar.server.registry.controllers.bootstrap.flow_schemas import flow_objects
from instar.server.registry.controllers.bootstrap.ip_addresses import ServiceIpAddresses
from instar.server.registry.controllers.bootstrap.objects import (
    ACCOUNT,
    AUTHENTICATION,
    AUTHORITY,
    AUTOMANAGED,
    account_object,
    api_objects,
    authority_object,
    class_objects,
    service_objects,
    system_objects,
)
from instar.server.registry.controllers.bootstrap.server_endpoints import ServerEndpoints
from instar.server.registry.controllers.bootstrap.server_lease import ServerLease
from instar.server.registry.controllers.bootstrap.writer import BootstrapWriter
from instar.server.registry.controllers.leadership import Leadership, StoreSharing
from instar.server.registry.controllers.manager_lease import ManagerLease
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change
from instar.wire.webhooks.resolver import HostPort

_BACKOFF = Backoff(0.5, 30.0)
_MENDED = (AUTHORITY, AUTHENTICATION)
"""ConfigMaps kept equal to the server's certificates."""
_CONCURRENT_WRITES = 16
_CLUSTER = "the cluster"
"""The queue key of cluster-scoped objects; no namespace can have this name."""


@dataclass(frozen=True)
class BootstrapFacts:
    """Facts about the running server that the bootstrap objects contain."""

    authority: str
    """The CA certificate by which clients trust this server, PEM."""
    authentication: Mapping[str, str]
    """Data of the ConfigMap ``extension-apiserver-authentication``."""
    address: HostPort | None
    """Where other machines reach this server; None where they do not."""
    port: int
    network: IPv4Network
    """Network from which Services get their cluster IPs."""


class BootstrapController:
    """Creates missing bootstrap objects, per namespace and for the cluster."""

    def __init__(
        self,
        context: Context,
        catalog: Catalog,
        leadership: Leadership,
        manager: ManagerLease,
        *,
        accounts: bool = True,
        authorities: bool = True,
    ) -> None:
        """``accounts``, ``authorities``: whether each namespace gets its default ServiceAccount,
        and the ConfigMap with the CA of the server, unless ``manager`` has them made elsewhere."""
        self._context, self._catalog, self._leadership = context, catalog, leadership
        self._accounts, self._authorities, self._manager = accounts, authorities, manager
        self._house: BootstrapFacts | None = None
        self._maker = BootstrapWriter(context, catalog)
        self._apis = CustomApiServices(catalog, self._maker, lambda: leadership.leads)
        self._addresses = ServiceIpAddresses(catalog, self._maker, lambda: leadership.leads)
        self._endpoints = ServerEndpoints(context, catalog, self._maker, lambda: leadership.leads)
        self._at_start: set[str] = set()
        """APIServices of built-in groups that have been looked at."""
        self._identity = ServerLease(context, self._maker)
        self._places: Queue[str] = Queue(
            "bootstrap objects",
            self._create_missing,
            _BACKOFF,
            max_concurrent=1,
            supervision=context.supervision,
        )

    def start(self, house: BootstrapFacts) -> None:
        """Start once the server can be reached."""
        self._house = house
        self._apis.start()
        self._addresses.start()
        self._endpoints.start()
        if self._leadership.company is not StoreSharing.LENDER:
            self._identity.start(house.address)
        if self._authorities:
            self._watch("configmaps", f"/{AUTHORITY}")
        if self._accounts:
            self._watch("serviceaccounts", f"/{ACCOUNT}")
        if self._accounts or self._authorities:
            namespaces = self._catalog.builtin("", "namespaces").objects
            namespaces.observers.append(lambda change: self._places.add(change.suffix))
        self._context.backend.cache.on_reset(self._look_at_all)
        self._leadership.on_elected(self._elected)
        self._manager.on_released(self._elected)
        if self._leadership.leads:
            self._look_at_all()

    async def stop(self) -> None:
        await self._identity.stop()
        await self._endpoints.stop()
        await self._addresses.stop()
        await self._apis.stop()
        await self._places.stop()

    async def _elected(self) -> None:
        self._look_at_all()

    def _watch(self, plural: str, ending: str) -> None:
        def changed(change: Change[CacheEntry]) -> None:
            if change.old is not None and change.suffix.endswith(ending):
                self._places.add(change.suffix.removesuffix(ending))

        self._catalog.builtin("", plural).objects.observers.append(changed)

    def _look_at_all(self) -> None:
        for name in self._catalog.builtin("", "namespaces").objects.entries:
            self._places.add(name)
        self._places.add(_CLUSTER)
        self._apis.look_at_all()
        self._addresses.look_at_all()
        self._endpoints.look_at_all()

    async def _create_missing(self, place: str) -> None:
        if not self._leadership.leads or self._house is None:
            return
        pieces = iter(self._objects_of(place, self._house))
        while together := tuple(islice(pieces, _CONCURRENT_WRITES)):
            await self._ensure_objects(together)

    def _objects_of(self, place: str, house: BootstrapFacts) -> Iterable[Object]:
        if place != _CLUSTER:
            entry = self._catalog.builtin("", "namespaces").objects.entries.get(place)
            if entry is None or is_terminating(entry) or self._manager.is_held:
                return ()
            return self._namespace_pieces(place, house)
        return self._cluster_pieces(house)

    def _namespace_pieces(self, namespace: str, house: BootstrapFacts) -> Iterator[Object]:
        if self._accounts:
            yield account_object(namespace)
        if self._authorities:
            yield authority_object(namespace, house.authority)

    def _cluster_pieces(self, house: BootstrapFacts) -> Iterator[Object]:
        yield from class_objects()
        yield from system_objects(house.authentication, self._context.timestamp()[:10])
        yield from service_objects(house.port, house.network)
        yield from flow_objects()
        yield from api_objects(self._group_versions())

    def _group_versions(self) -> Iterator[tuple[str, str]]:
        versions: dict[str, list[str]] = {}
        for resource in self._catalog.resources():
            serving = resource.serving
            known = versions.setdefault(serving.group, []) if serving.builtin else []
            known += [
                one.name
                for one in serving.versions.values()
                if one.served and one.name not in known
            ]
        for group, names in versions.items():
            for name in names:
                yield group, name

    async def _ensure_objects(self, pieces: Iterable[Object]) -> None:
        """Write them at the same time, so that they share commits; then fail if one could not."""
        writes = map(self._ensure_object, pieces)
        for outcome in await asyncio.gather(*writes, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _ensure_object(self, piece: Object) -> None:
        resource, _, entry = self._maker.find(piece)
        if entry is None:
            await self._maker.make(piece)
        elif piece["kind"] == "APIService":
            await self._put_back_once(piece, entry)
        elif piece["metadata"]["name"] in _MENDED:
            obj = entry.decode()
            data = {**(obj.get("data") or {}), **piece["data"]}
            if obj.get("data") != data:
                await self._maker.rewrite(resource, entry, {**obj, "data": data})

    async def _put_back_once(self, piece: Object, entry: CacheEntry) -> None:
        """An APIService of a built-in group is put back at the start, and left alone later."""
        if entry.suffix in self._at_start:
            return
        self._at_start.add(entry.suffix)
        if AUTOMANAGED in entry.labels:
            await put_back(self._maker, piece)
