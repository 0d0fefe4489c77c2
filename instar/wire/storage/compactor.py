"""Compactor: compacts the store's history by age and by size.

Run as a task by ``server/lifecycle/storage_start.py``. The compactor samples the store's revision
over time and compacts to the sample that is old enough. Several replicas on one store may each run
a compactor, because compacting twice is harmless.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from instar.base import limits
from instar.base.supervision import rest
from instar.wire.storage.store import HistorySizedStore, Store, StoreError

_log = logging.getLogger(__name__)


class HistoryLimits(NamedTuple):
    """Upper limits of the kept history, whatever its age."""

    bytes: int = limits.HISTORY_BYTES
    writes: int = limits.HISTORY_WRITES


class Compactor:
    """Keep ``keep`` seconds of history and up to a fifth more, or less if it exceeds ``most``.

    ``compacted`` is called with each revision, so that caches drop history with the store. Caches
    keep at most ``window`` seconds, even where the store keeps more.
    """

    def __init__(
        self,
        store: Store,
        *,
        keep: float = 300.0,
        window: float = 300.0,
        most: HistoryLimits | None = None,
        samples: int = 5,
        clock: Callable[[], float] = time.monotonic,
        compacted: Callable[[int], None] | None = None,
    ) -> None:
        self._store, self._keep, self._clock = store, keep, clock
        self._interval = min(keep, window) / samples
        self._between = keep / samples / 4  # samples may be sparse when history is kept for a day
        self._window, self._most = window, most or HistoryLimits()
        self._recent: deque[tuple[float, int]] = deque()
        self._compacted = compacted
        self._told = 0
        self._seen: deque[tuple[float, int]] = deque()
        self._done = 0

    async def run(self) -> None:
        """Compact periodically until cancelled; a store error is logged and retried next time."""
        while True:
            try:
                await self.tick()
            except StoreError as error:
                _log.warning("cannot compact the store, will retry: %s", error)
            await rest(self._interval)

    async def tick(self) -> int:
        """Note the current revision and compact to the newest one that is old enough, if any."""
        now = self._clock()
        revision = await self._store.barrier()
        _note(self._seen, now, revision, self._between)
        _note(self._recent, now, revision, 0.0)
        target = max(_old_enough(self._seen, now - self._keep), await self._excess())
        # Caches first: a cache may still have to read older entries from the store.
        self._notify_caches(max(target, self._done, _old_enough(self._recent, now - self._window)))
        if target > self._done:
            await self._store.compact(target)
            self._done = target
        return self._done

    async def _excess(self) -> int:
        if not isinstance(self._store, HistorySizedStore):
            return 0
        return await self._store.excess(self._most.bytes, self._most.writes)

    def _notify_caches(self, revision: int) -> None:
        if self._compacted is not None and revision > self._told:
            self._told = revision
            self._compacted(revision)


def _note(seen: deque[tuple[float, int]], now: float, revision: int, between: float) -> None:
    if not seen or (seen[-1][1] != revision and now - seen[-1][0] >= between):
        seen.append((now, revision))


def _old_enough(seen: deque[tuple[float, int]], moment: float) -> int:
    """Return the revision that was current at ``moment``; all later revisions are kept."""
    while len(seen) > 1 and seen[1][0] <= moment:
        seen.popleft()
    when, revision = seen[0]
    return revision if when <= moment else 0
