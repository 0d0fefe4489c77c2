"""Endpoints and EndpointSlice of the Service ``default/kubernetes``: the addresses of all servers.

Part of the bootstrap controller (``controller.py``). Each server writes its address into an
annotation of its Lease (``server_lease.py``); the leader collects the addresses of the servers that
renewed theirs lately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

import orjson

from instar.base.json_values import Object
from instar.base.times import micro_time_text
from instar.server.registry.controllers.bootstrap.writer import BootstrapWriter
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.watchcache.collection import Change
from instar.wire.webhooks.resolver import HostPort

ANNOTATION = "instar.dev/endpoints"
LEASES = "kube-system/apiserver-"
_SILENT = timedelta(seconds=35)
"""A server that has not renewed its address for so long is gone; it renews every ten seconds."""
_BACKOFF = Backoff(0.5, 30.0)
_OURS = "default/kubernetes"
Renewals = dict[HostPort, str]
"""Address of a server → when it was renewed, as a MicroTime: these sort by time."""


def renewals_of(lease: Object) -> Renewals:
    """Return the addresses that a Lease names; none if the annotation is not ours."""
    text = (lease["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        rows = [] if text is None else orjson.loads(text)
        return {HostPort(str(host), int(port)): str(at) for host, port, at in rows}
    except (ValueError, TypeError):
        return {}


def with_renewal(lease: Object, address: HostPort, now: datetime) -> Object:
    """Return the metadata of a Lease with an address renewed, and without those long silent.

    Several servers of one machine share its Lease, so each keeps the addresses of the others.
    """
    known = {**renewals_of(lease), address: micro_time_text(now)}
    rows = [[*each, at] for each, at in sorted(known.items()) if at > _oldest(now)]
    metadata = lease["metadata"]
    annotations = {**(metadata.get("annotations") or {}), ANNOTATION: orjson.dumps(rows).decode()}
    return {**metadata, "annotations": annotations}


def _oldest(now: datetime) -> str:
    return micro_time_text(now - _SILENT)


def endpoint_objects(addresses: Iterable[HostPort]) -> tuple[Object, Object]:
    """Return Endpoints and EndpointSlice. As upstream, the slice shows the first port's hosts."""
    hosts: dict[int, list[str]] = {}
    for host, port in sorted(addresses):
        hosts.setdefault(port, []).append(host)
    metadata = {"name": "kubernetes", "namespace": "default"}
    first, shown = min(hosts.items(), default=(0, []))
    family = "IPv6" if shown and all(":" in host for host in shown) else "IPv4"
    endpoints: Object = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {**metadata, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [
            {"addresses": [{"ip": host} for host in each], "ports": [_port(port)]}
            for port, each in sorted(hosts.items())
        ],
    }
    slice_: Object = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": family,
        "endpoints": [
            {"addresses": [host], "conditions": {"ready": True}}
            for host in shown
            if (":" in host) is (family == "IPv6")
        ],
        "ports": [_port(first)],
    }
    return endpoints, slice_


def _port(port: int) -> Object:
    return {"name": "https", "port": port, "protocol": "TCP"}


class ServerEndpoints:
    """Writes both objects when a server's address comes, changes or falls silent."""

    def __init__(
        self,
        context: Context,
        catalog: Catalog,
        maker: BootstrapWriter,
        leads: Callable[[], bool],
    ) -> None:
        self._context, self._maker, self._leads = context, maker, leads
        self._leases = catalog.builtin("coordination.k8s.io", "leases").objects
        self._written = [
            catalog.builtin("", "endpoints").objects,
            catalog.builtin("discovery.k8s.io", "endpointslices").objects,
        ]
        self._queue: Queue[str] = Queue(
            "the endpoints", self._reconcile, _BACKOFF, supervision=maker.supervision
        )

    def start(self) -> None:
        self._leases.observers.append(self._lease_changed)
        for objects in self._written:
            objects.observers.append(self._written_changed)

    async def stop(self) -> None:
        await self._queue.stop()

    def look_at_all(self) -> None:
        self._queue.add(_OURS)

    def _lease_changed(self, change: Change[CacheEntry]) -> None:
        if change.suffix.startswith(LEASES):
            self._queue.add(_OURS)

    def _written_changed(self, change: Change[CacheEntry]) -> None:
        if change.suffix == _OURS and change.old is not None:
            self._queue.add(_OURS)

    async def _reconcile(self, key: str) -> float | None:
        if not self._leads():
            return None
        renewals = self._renewals()
        oldest = _oldest(self._context.now())
        living = [address for address, at in renewals.items() if at > oldest]
        if not living:
            return None  # this server has none, or writes its own soon
        for piece in endpoint_objects(living):
            await self._ensure(piece)
        return _SILENT.total_seconds() if len(living) > 1 else None

    def _renewals(self) -> Renewals:
        found: Renewals = {}
        for suffix in self._leases.suffixes(LEASES):
            try:
                lease = self._leases.entries[suffix].decode()
            except UnreadableEntry:
                continue
            for address, at in renewals_of(lease).items():
                found[address] = max(at, found.get(address, ""))
        return found

    async def _ensure(self, piece: Object) -> None:
        resource, _, entry = self._maker.find(piece)
        if entry is None:
            await self._maker.make(piece)
            return
        obj = entry.decode()
        if obj.get("addressType") != piece.get("addressType"):
            await self._maker.remove(resource, entry)
            await self._maker.make(piece)
        elif not _agrees(obj, piece):
            labels = {**(obj["metadata"].get("labels") or {}), **piece["metadata"]["labels"]}
            metadata = {**obj["metadata"], "labels": labels}
            await self._maker.rewrite(resource, entry, {**obj, **piece, "metadata": metadata})


def _agrees(obj: Object, piece: Mapping[str, Object]) -> bool:
    labels = obj["metadata"].get("labels") or {}
    fields = (name for name in piece if name not in ("apiVersion", "kind", "metadata"))
    return piece["metadata"]["labels"].items() <= labels.items() and all(
        obj.get(name) == piece[name] for name in fields
    )
