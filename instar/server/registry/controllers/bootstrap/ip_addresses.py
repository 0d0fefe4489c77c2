"""IPAddress objects for the cluster IPs of Services.

Part of the bootstrap controller (``controller.py``). A write of a Service claims its address by
creating the IPAddress (``address_claims.py``). This module deletes it after the Service is gone,
deletes claims of Services that were never stored, and creates IPAddresses that are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

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
CLAIM_SECONDS = 60.0
"""For how long an address may be claimed by a Service that is not stored yet."""


class ServiceIpAddresses:
    """Keeps one IPAddress per allocated cluster IP."""

    def __init__(self, catalog: Catalog, maker: BootstrapWriter, leads: Callable[[], bool]) -> None:
        self._maker, self._leads = maker, leads
        self._services = catalog.builtin("", "services").objects
        self._addresses = catalog.builtin("networking.k8s.io", "ipaddresses").objects
        self._holders: dict[str, str] = {}
        """Address → the Service (``namespace/name``) that uses it."""
        self._freed: dict[str, int] = {}
        """Address → the revision at which a Service gave it up; until its IPAddress is gone."""
        self._seen: dict[str, tuple[int, float]] = {}
        """Address without a Service → revision of its IPAddress, and when it was seen first."""
        self._queue: Queue[str] = Queue(
            "the address", self._reconcile, _BACKOFF, supervision=maker.supervision
        )

    def start(self) -> None:
        self._services.observers.append(self._changed)
        self._addresses.observers.append(self._claimed)

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
            self._freed[address] = change.revision
            self._queue.add(address)
        for address in set(after) - set(before):
            self._holders[address] = change.suffix
            self._queue.add(address)

    def _claimed(self, change: Change[CacheEntry]) -> None:
        if change.new is None:
            self._freed.pop(change.suffix, None)
            self._seen.pop(change.suffix, None)
        elif change.old is None and change.suffix not in self._holders:
            self._queue.add_later(change.suffix, CLAIM_SECONDS)

    async def _reconcile(self, address: str) -> float | None:
        if not self._leads():
            return None
        holder = self._holders.get(address)
        namespace, _, name = (holder or "/").partition("/")
        piece = address_object(address, namespace, name)
        resource, _, entry = self._maker.find(piece)
        if entry is not None and _is_ours(entry) and not _is_for(entry, piece, holder):
            if holder is None and self._may_be_claimed(address, entry):
                return CLAIM_SECONDS
            await self._maker.remove(resource, entry)
            entry = None
        if entry is None and holder is not None:
            await self._maker.make(piece)
        return None

    def _may_be_claimed(self, address: str, entry: CacheEntry) -> bool:
        """Whether a Service that is being written may hold the IPAddress."""
        if entry.revision < self._freed.get(address, 0):
            return False
        revision, since = self._seen.get(address, (0, 0.0))
        if revision == entry.revision:
            return monotonic() - since < CLAIM_SECONDS
        self._seen[address] = (entry.revision, monotonic())
        return True


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
