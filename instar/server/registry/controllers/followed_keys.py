"""A queue of one resource's objects, and of other changes that mean them; only the leader acts.

Controllers that kube-controller-manager has as well are made with it (``disruption.py``,
``endpoint_mirror.py``, ``service_ranges.py``): their ``Duty`` ends while a real one holds its
lease.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from instar.server.registry.controllers.manager_lease import Duty
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change

_BACKOFF = Backoff(0.2, 30.0)
_TOGETHER_SECONDS = 0.05
"""Changes of other objects within this time lead to one look at the object that they mean."""


class FollowedKeys:
    """Calls ``reconcile`` with the key suffix of each object that has changed or is meant."""

    def __init__(
        self,
        what: str,
        context: Context,
        duty: Duty,
        resource: Resource,
        reconcile: Callable[[str], Awaitable[float | None]],
    ) -> None:
        self._context, self._duty = context, duty
        self._resource, self._reconcile = resource, reconcile
        self._queue: Queue[str] = Queue(
            what, self._work, _BACKOFF, max_concurrent=1, supervision=context.supervision
        )

    def start(self) -> None:
        self._resource.objects.observers.append(self._changed)
        self._context.backend.cache.on_reset(self._add_all)
        self._duty.on_elected(self._elected)

    async def stop(self) -> None:
        await self._queue.stop()

    def add(self, suffixes: Iterable[str]) -> None:
        """Look at objects soon, because something that they depend on has changed."""
        for suffix in suffixes:
            self._queue.add_later(suffix, _TOGETHER_SECONDS)

    def _changed(self, change: Change[CacheEntry]) -> None:
        self._queue.add(change.suffix)

    def _add_all(self) -> None:
        for suffix in self._resource.objects.entries:
            self._queue.add(suffix)

    async def _elected(self) -> None:
        self._add_all()

    async def _work(self, suffix: str) -> float | None:
        return await self._reconcile(suffix) if self._duty.leads else None
