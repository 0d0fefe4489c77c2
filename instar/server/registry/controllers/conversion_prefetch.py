"""Conversion prefetch: converts written objects in the background, before clients read them.

Created by ``server/lifecycle/controller_setup.py`` for CRDs with a conversion webhook. Writes are
answered first; then changed objects are converted to the versions that clients have read recently,
many per webhook call, with pauses so that requests go first. The results are the first to be
evicted from the conversion cache. A failed conversion only causes a pause, because the reader gets
the error.
"""

from __future__ import annotations

import time
from collections import defaultdict
from functools import partial
from itertools import islice

from instar.base.supervision import Supervision, rest
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change

_GATHER_SECONDS = 0.03
"""Seconds to wait for more writes before a call with less than a full batch."""
_BATCH = 100
"""Objects per call: a few milliseconds of the event loop."""
MOST_WAITING = 10_000
"""Queued objects per resource; beyond that the oldest are dropped and converted when read."""


class ConversionPrefetch:
    """Queues changed objects per CRD and converts them in batches."""

    def __init__(self, catalog: Catalog, supervision: Supervision | None = None) -> None:
        self._catalog = catalog
        self._waiting: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._attended: set[str] = set()
        """CRDs with a running worker, which sees new changes by itself. ``Queue.holds`` cannot
        tell, because it is true for a moment after the work has ended."""
        self._queue: Queue[str] = Queue(
            "converting ahead",
            self._reconcile,
            Backoff(1.0, 60.0),
            max_concurrent=1,
            supervision=supervision,
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

    async def _reconcile(self, crd: str) -> float | None:
        took = 0.0
        while waiting := self._waiting[crd]:
            # Pause as long as the last call took, so that requests get half of the time.
            await rest(took if len(waiting) >= _BATCH else max(_GATHER_SECONDS, took))
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
                for version in codec.versions_to_prefetch(entry):
                    wanted[version].append(entry)
        for version, found in wanted.items():
            await codec.convert_ahead(found, version)
