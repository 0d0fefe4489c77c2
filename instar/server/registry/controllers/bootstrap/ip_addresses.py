"""IPAddress objects for the cluster IPs of Services.

Part of the bootstrap controller (``controller.py``): creates and deletes IPAddresses shortly after
Services change.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base.json_values import Object
from instar.server.registry.controllers.bootstrap.objects import (
    MANAGED_BY,
    OUR_ALLOCATOR,
    address_object,
)
from instar.server.registry.controllers.bootstrap.writer import BootstrapWriter
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.watchcache.collection import Change

_BACKOFF = Backoff(0.5, 30.0)


class ServiceIpAddresses:
    """Keeps one IPAddress per allocated cluster IP."""

    def __init__(self, catalog: Catalog, maker: BootstrapWriter, leads: Callable[[], bool]) -> None:
        self._maker, self._leads = maker, leads
        self._services = catalog.builtin("", "services").objects
        self._addresses = catalog.builtin("networking.k8s.io", "ipaddresses").objects
        self._holders: dict[str, str] = {}
        """Address → the Service (``namespace/name``) that uses it."""
        self._queue: Queue[str] = Queue(
            "the address", self._reconcile, _BACKOFF, supervision=maker.supervision
        )

    def start(self) -> None:
        self._services.observers.append(self._changed)

    async def stop(self) -> None:
        await self._queue.stop()

    def look_at_all(self) -> None:
        self._holders.clear()
        for entry in self._services.entries.values():
            for address in _addresses(entry):
                self._holders[address] = entry.suffix
        for address in {*self._holders, *self._addresses.entries}:
            self._queue.add(address)

    def _changed(self, change: Change[CacheEntry]) -> None:
        before, after = _addresses(change.old), _addresses(change.new)
        for address in set(before) - set(after):
            if self._holders.get(address) == change.suffix:
                del self._holders[address]
            self._queue.add(address)
        for address in set(after) - set(before):
            self._holders[address] = change.suffix
            self._queue.add(address)

    async def _reconcile(self, address: str) -> None:
        if not self._leads():
            return
        holder = self._holders.get(address)
        namespace, _, name = (holder or "/").partition("/")
        piece = address_object(address, namespace, name)
        resource, _, entry = self._maker.found(piece)
        if entry is not None and _is_ours(entry) and not _is_for(entry, piece, holder):
            await self._maker.remove(resource, entry)
            entry = None
        if entry is None and holder is not None:
            await self._maker.make(piece)


def _addresses(entry: CacheEntry | None) -> list[str]:
    try:
        spec = {} if entry is None else entry.decode().get("spec") or {}
    except UnreadableEntry:
        return []
    return [address for address in spec.get("clusterIPs") or () if address != "None"]


def _is_ours(entry: CacheEntry) -> bool:
    return entry.labels.get(MANAGED_BY) == OUR_ALLOCATOR


def _is_for(entry: CacheEntry, piece: Object, holder: str | None) -> bool:
    spec = entry.decode().get("spec") or {}
    return holder is not None and spec.get("parentRef") == piece["spec"]["parentRef"]
