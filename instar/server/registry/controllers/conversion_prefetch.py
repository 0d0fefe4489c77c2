"""Converts what was written before somebody asks for it, where the asking costs a webhook's time.

Writes are answered first; then what they left is converted to the versions that somebody reads,
many objects in one call, with pauses, so that whoever waits for an answer goes before. What is
learnt this way is the first to be forgotten. A failure is the reader's to hear: here it only
means a pause.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from functools import partial
from itertools import islice

from instar.server.registry.controllers.queue import Delays, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change

_COMPANY = 0.03
"""Seconds to wait for more writes before a call that is not full."""
_BATCH = 100
"""Objects per call: a few milliseconds of the event loop."""
MOST_WAITING = 10_000
"""Objects of one resource; of more the oldest are left to their readers."""


class AheadOfReaders:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._waiting: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._attended: set[str] = set()
        """Whose changes will be looked at without anybody saying so. Not the queue's word: it
        holds a key for a moment longer than the work on it goes on."""
        self._queue: Queue[str] = Queue(
            "converting ahead", self._attend, Delays(1.0, 60.0), at_once=1
        )

    def start(self) -> None:
        for resource in self._catalog.customs():
            self._follow(resource)
        self._catalog.on_opened(self._follow)

    async def stop(self) -> None:
        await self._queue.stop()

    def _follow(self, resource: Resource) -> None:
        resource.follow(partial(self._changed, resource))

    def _changed(self, resource: Resource, change: Change[CacheEntry]) -> None:
        if not resource.serving.converts_remotely:
            return
        if change.old is not None:
            resource.codec.outdate(change.old)
        if change.new is None:
            return
        name = resource.crd.name
        waiting = self._waiting[name]
        waiting[change.suffix] = None
        if len(waiting) > MOST_WAITING:
            del waiting[next(iter(waiting))]
        if name not in self._attended:
            self._attended.add(name)
            self._queue.add(name)

    async def _attend(self, crd: str) -> float | None:
        took = 0.0
        while waiting := self._waiting[crd]:
            # As long as the last one took: half of the time is for others.
            await asyncio.sleep(took if len(waiting) >= _BATCH else max(_COMPANY, took))
            began = time.monotonic()
            batch = list(islice(waiting, _BATCH))
            for suffix in batch:
                del waiting[suffix]
            await self._convert(crd, batch)
            took = time.monotonic() - began
        del self._waiting[crd]
        self._attended.discard(crd)
        return None

    async def _convert(self, crd: str, suffixes: list[str]) -> None:
        resource = self._catalog.custom(crd)
        if resource is None:
            return
        codec, entries = resource.codec, resource.objects.entries
        wanted = defaultdict(list)
        for suffix in suffixes:
            entry = entries.get(suffix)
            if entry is not None:
                for version in codec.ahead_of_readers(entry):
                    wanted[version].append(entry)
        for version, found in wanted.items():
            await codec.convert_ahead(found, version)
