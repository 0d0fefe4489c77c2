"""Label index of one collection: finds the objects that carry a label without looking at the
others.

``verbs/read.py`` uses it for lists with a label selector. The index is built when the first such
list arrives and then follows the collection's changes. The index holds the stored labels, so
resources with a conversion webhook, which may change labels, do not use it.
"""

from __future__ import annotations

import asyncio

from instar.base import offload
from instar.kube.api.selectors import LabelSelector
from instar.server.registry.stored.backend import Objects
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.storage_errors import with_api_errors
from instar.wire.storage.watchcache.collection import Change

_OBJECTS_PER_TURN = 20_000
"""Objects indexed or sorted in one turn of the event loop."""
_OBJECTS_PER_CHECK = 100
"""Objects between two looks at the clock."""


class LabelIndex:
    """Maps each label to the keys of the objects that carry it."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._carriers: dict[tuple[str, str], set[str]] = {}
        self._complete = False
        self._task: asyncio.Task[None] | None = None
        objects.listeners.insert(0, self._changed)

    async def built(self) -> None:
        """Wait until all objects are indexed; a large collection is indexed in slices. Raises if an
        object cannot be read; the next call then starts again."""
        if self._complete:
            return
        if len(self._objects.entries) <= _OBJECTS_PER_TURN:
            for entry in self._objects.entries.values():
                self._add(entry)
            self._complete = True
            return
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._build())
        task = self._task
        await asyncio.wait((task,))  # not awaited directly: a cancelled request must not cancel it
        if not task.cancelled() and (failure := task.exception()) is not None:
            raise failure

    def close(self) -> None:
        self._objects.listeners.remove(self._changed)
        if self._task is not None:
            self._task.cancel()

    async def _build(self) -> None:
        breaks, current = offload.Breaks(), self._objects.entries
        for position, entry in enumerate(await with_api_errors(self._objects.gather)):
            now = current.get(entry.suffix)
            if now is not None and now.revision == entry.revision:
                self._add(entry)  # later changes are indexed already
            if position % _OBJECTS_PER_CHECK == 0:
                await breaks.between()
        self._complete = True

    def matching(self, selector: LabelSelector) -> list[str] | None:
        """Return the keys that may match, in order; None when all objects must be looked at."""
        equalities = selector.equalities()
        if not equalities:
            return None
        carriers = [self._carriers.get(pair) for pair in equalities]
        if not all(carriers):
            return []
        smallest = min((found for found in carriers if found), key=len)
        if len(smallest) > _OBJECTS_PER_TURN:
            return None  # sorting so many takes longer than a turn of the loop
        return sorted(smallest)

    def _changed(self, change: Change[CacheEntry]) -> None:
        if change.old is not None:
            self._remove(change.old)
        if change.new is not None:
            self._add(change.new)

    def _add(self, entry: CacheEntry) -> None:
        for pair in entry.labels.items():
            self._carriers.setdefault(pair, set()).add(entry.suffix)

    def _remove(self, entry: CacheEntry) -> None:
        for pair in entry.labels.items():
            carriers = self._carriers.get(pair)
            if carriers is not None:
                carriers.discard(entry.suffix)
                if not carriers:
                    del self._carriers[pair]
