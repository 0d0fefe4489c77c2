"""Event expiry: deletes Events one hour after their last write, like an etcd lease upstream.

Created by ``server/lifecycle/controller_setup.py``; only the leader deletes. Events that exist when
the server starts expire one hour later. If an Event cannot be deleted, the controller tries again
later and meanwhile deletes the others.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable
from time import monotonic

from instar.base.errors import ApiError
from instar.base.supervision import SupervisedTask, note_progress, report_failure, rest, resting
from instar.server.registry.controllers.leadership import Leadership
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.store import Stale
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
HOUR = 3600.0
_AGAIN_SECONDS = 5.0


class EventExpiry:
    """Deletes expired Events."""

    def __init__(
        self,
        context: Context,
        events: Resource,
        leadership: Leadership,
        *,
        seconds: float = HOUR,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._context, self._events, self._leadership = context, events, leadership
        self._seconds, self._clock = seconds, clock
        self._written: list[tuple[float, str, int]] = []
        """A heap of (expiry time, key suffix, revision)."""
        self._kept: SupervisedTask | None = None
        self._more = asyncio.Event()

    def start(self) -> None:
        for entry in self._events.objects.entries.values():
            self._note(entry)
        self._events.objects.observers.append(self._changed)
        self._context.backend.cache.on_reset(self._start_over)
        self._kept = self._context.supervision.keep("event-expiry", self._run)

    async def stop(self) -> None:
        if self._kept is not None:
            await self._kept.stop()

    def _start_over(self) -> None:
        self._written.clear()
        for entry in self._events.objects.entries.values():
            self._note(entry)

    def _changed(self, change: Change[CacheEntry]) -> None:
        if change.new is not None:
            self._note(change.new)

    def _note(self, entry: CacheEntry) -> None:
        expires = self._clock() + self._seconds
        heapq.heappush(self._written, (expires, entry.suffix, entry.revision))
        self._more.set()

    async def _run(self) -> None:
        while True:
            if not self._written:
                self._more.clear()
                with resting():
                    await self._more.wait()
                continue
            due, suffix, revision = self._written[0]
            wait = due - self._clock()
            if wait > 0:
                await rest(wait)
                continue
            heapq.heappop(self._written)
            if not await self._forget(suffix, revision):
                again = self._clock() + _AGAIN_SECONDS
                heapq.heappush(self._written, (again, suffix, revision))
            note_progress()

    async def _forget(self, suffix: str, revision: int) -> bool:
        """Return True if done: deleted, written again since, or left to the leader."""
        entry = self._events.objects.entries.get(suffix)
        if entry is None or entry.revision != revision or not self._leadership.leads:
            return True
        try:
            await self._context.backend.remove(self._events.objects, suffix, revision)
        except Stale:
            return True
        except ApiError as error:
            log.info("cannot delete expired event %s, will retry: %s", suffix, error)
            return False
        except Exception as error:
            report_failure("event-expiry", error, suffix)
            return False
        return True
