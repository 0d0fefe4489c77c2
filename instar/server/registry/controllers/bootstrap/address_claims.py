"""Claims cluster IPs in the store, so that no two servers give one address to two Services.

``admission/plugins/service_addresses.py`` claims an address before a Service is stored, by creating
the IPAddress: the store accepts one object of a name. ``ip_addresses.py`` deletes an IPAddress when
its Service is gone, or was not stored within a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property

from instar.base.taskless_wait import Waiter, waiter
from instar.server.registry.admission.plugins.service_addresses import AddressClaim
from instar.server.registry.controllers.bootstrap.objects import address_object
from instar.server.registry.controllers.bootstrap.writer import BootstrapWriter
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.store import Stale
from instar.wire.storage.watchcache.collection import Change, Collection

_GONE_SECONDS = 5.0
"""For how long a claim waits for the IPAddress of a Service that was just deleted."""


class AddressClaims:
    """IPAddresses that are made before their Services."""

    def __init__(
        self, writer: Callable[[], BootstrapWriter], services: Collection[CacheEntry]
    ) -> None:
        """``writer`` is called with the first claim: it needs the server's whole registry."""
        self._make_writer, self._services = writer, services
        self._waiting: dict[str, list[Waiter[None]]] = {}

    @cached_property
    def _writer(self) -> BootstrapWriter:
        made = self._make_writer()
        resource, _, _ = made.find(address_object("", "", ""))
        resource.objects.observers.append(self._changed)
        return made

    async def take(self, address: str, owner: str, *, patient: bool) -> AddressClaim:
        """Claim the address for the Service ``namespace/name``."""
        namespace, _, name = owner.partition("/")
        piece = address_object(address, namespace, name)
        if await self._writer.make(piece):
            return AddressClaim.MADE
        _, _, entry = self._writer.find(piece)
        if entry is not None and _parent(entry) == owner:
            return AddressClaim.SHARED
        if entry is not None and not (patient and self._is_left_over(entry)):
            return AddressClaim.REFUSED
        if entry is not None:
            await self._until_gone(address)
        made = await self._writer.make(piece)
        return AddressClaim.MADE if made else AddressClaim.REFUSED

    async def give_back(self, address: str, owner: str) -> None:
        """Delete the IPAddress of a Service that was not stored."""
        namespace, _, name = owner.partition("/")
        piece = address_object(address, namespace, name)
        resource, _, entry = self._writer.find(piece)
        if entry is None or _parent(entry) != owner:
            return
        try:
            await self._writer.remove(resource, entry)
        except Stale:
            return  # a client has changed it; it goes when it is found without a Service

    def _is_left_over(self, entry: CacheEntry) -> bool:
        """Whether its Service is gone: the IPAddress goes, too, a moment later."""
        parent = _parent(entry)
        return parent is not None and parent not in self._services.entries

    async def _until_gone(self, address: str) -> None:
        gone: Waiter[None] = waiter()
        self._waiting.setdefault(address, []).append(gone)
        timer = asyncio.get_running_loop().call_later(_GONE_SECONDS, self._wake, address)
        try:
            await gone
        finally:
            timer.cancel()

    def _changed(self, change: Change[CacheEntry]) -> None:
        if change.new is None and self._waiting:
            self._wake(change.suffix)

    def _wake(self, address: str) -> None:
        for each in self._waiting.pop(address, ()):
            if not each.done():
                each.set_result(None)


def _parent(entry: CacheEntry) -> str | None:
    """The Service (``namespace/name``) of an IPAddress."""
    try:
        parent = (entry.decode().get("spec") or {}).get("parentRef") or {}
    except UnreadableEntry:
        return None
    if (parent.get("group"), parent.get("resource")) not in ((None, "services"), ("", "services")):
        return None
    return f"{parent.get('namespace', '')}/{parent.get('name', '')}"
