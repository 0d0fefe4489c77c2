"""Detects by its Lease whether a real kube-controller-manager runs on this server.

While one renews ``kube-system/kube-controller-manager``, this server pauses the controllers that
kube-controller-manager also has, because both would write the same ConfigMaps and overwrite each
other's quota status. The paused controllers resume when the lease is released or expires; expiry is
measured with the local clock, from the last renewal that was seen.
``lifecycle/controller_setup.py`` hands ``YieldingLeadership`` to these controllers instead of the
server's own ``Leadership``.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from instar.base.supervision import SupervisedTask, resting
from instar.server.registry.controllers.leadership import Elected, Leadership
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
LEASE = "kube-system/kube-controller-manager"
_DEFAULT_SECONDS = 15.0


class Duty(Protocol):
    """What a controller asks before it acts."""

    @property
    def leads(self) -> bool: ...

    def on_elected(self, elected: Elected) -> None: ...


class ManagerLease:
    """Follows the lease of kube-controller-manager."""

    def __init__(self, context: Context, leases: Resource, *, followed: bool) -> None:
        """``followed`` is False where an operator has chosen the controllers by name."""
        self._context, self._leases, self._followed = context, leases, followed
        self._ends = 0.0
        """When the lease runs out, by the event loop's clock; 0 when it is not held."""
        self._changed = asyncio.Event()
        self._released: list[Elected] = []
        self._kept: SupervisedTask | None = None

    @property
    def is_held(self) -> bool:
        return bool(self._ends)

    def on_released(self, released: Elected) -> None:
        """Register ``released``, called when the lease is given back or has run out."""
        self._released.append(released)

    def start(self) -> None:
        if not self._followed:
            return
        self._leases.objects.observers.append(self._lease_changed)
        entry = self._leases.objects.entries.get(LEASE)
        if entry is not None:
            self._look(entry)
        self._kept = self._context.supervision.keep("manager-lease", self._follow)

    async def stop(self) -> None:
        if self._kept is not None:
            await self._kept.stop()

    def _lease_changed(self, change: Change[CacheEntry]) -> None:
        if change.suffix == LEASE:
            self._look(change.new)

    def _look(self, entry: CacheEntry | None) -> None:
        holder, seconds = _holder(entry)
        if holder and not self._ends:
            log.info("%s holds the lease %s: this server pauses its controllers", holder, LEASE)
        self._ends = asyncio.get_running_loop().time() + seconds if holder else 0.0
        self._changed.set()

    async def _follow(self) -> None:
        """Wait for the end of the lease, again and again."""
        held = False
        while True:
            left = self._ends - asyncio.get_running_loop().time()
            if self._ends and left > 0:
                held = True
                await _wait(self._changed, left)
            elif held:
                held, self._ends = False, 0.0
                log.info("the lease %s is not held any more: controllers run here", LEASE)
                for released in self._released:
                    await released()
            else:
                await _wait(self._changed, None)


class YieldingLeadership:
    """Leadership of controllers that a real kube-controller-manager runs as well."""

    def __init__(self, leadership: Leadership, manager: ManagerLease) -> None:
        self._leadership, self._manager = leadership, manager

    @property
    def leads(self) -> bool:
        return self._leadership.leads and not self._manager.is_held

    def on_elected(self, elected: Elected) -> None:
        async def released() -> None:
            if self._leadership.leads:
                await elected()

        self._leadership.on_elected(elected)
        self._manager.on_released(released)


def _holder(entry: CacheEntry | None) -> tuple[str, float]:
    """Return the holder's identity, empty when there is none, and how long it holds the lease."""
    try:
        spec = {} if entry is None else entry.decode().get("spec") or {}
    except UnreadableEntry:
        spec = {}
    return spec.get("holderIdentity") or "", spec.get("leaseDurationSeconds") or _DEFAULT_SECONDS


async def _wait(changed: asyncio.Event, seconds: float | None) -> None:
    changed.clear()
    try:
        with resting():
            async with asyncio.timeout(seconds):
                await changed.wait()
    except TimeoutError:
        return
