"""Forgets history by age and by size: remembers which revision the store had when, and compacts
to the past.

Several replicas on one store may each run one: compacting twice is harmless.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from instar.base import limits
from instar.wire.storage.store import HistorySizedStore, Store, StoreError

_log = logging.getLogger(__name__)


class Most(NamedTuple):
    """How much history may grow, whatever its age."""

    bytes: int = limits.HISTORY_BYTES
    writes: int = limits.HISTORY_WRITES


class Compactor:
    """Keeps ``keep`` seconds of history and up to a fifth more, unless it grows beyond ``most``.

    ``compacted`` is told each revision, so that caches can forget with the store; they need not
    remember longer than ``window`` seconds, however long the store does.
    """

    def __init__(
        self,
        store: Store,
        *,
        keep: float = 300.0,
        window: float = 300.0,
        most: Most | None = None,
        samples: int = 5,
        clock: Callable[[], float] = time.monotonic,
        compacted: Callable[[int], None] | None = None,
    ) -> None:
        self._store, self._keep, self._clock = store, keep, clock
        self._interval = min(keep, window) / samples
        self._between = keep / samples / 4  # what is noted for a whole day need not be dense
        self._window, self._most = window, most or Most()
        self._recent: deque[tuple[float, int]] = deque()
        self._compacted = compacted
        self._told = 0
        self._seen: deque[tuple[float, int]] = deque()
        self._done = 0

    async def run(self) -> None:
        """Until cancelled; a store that cannot answer now is asked again next time."""
        while True:
            try:
                await self.tick()
            except StoreError as error:
                _log.warning("compaction is put off: %s", error)
            await asyncio.sleep(self._interval)

    async def tick(self) -> int:
        """Note the current revision and compact to the newest one that is old enough, if any."""
        now = self._clock()
        revision = await self._store.barrier()
        _note(self._seen, now, revision, self._between)
        _note(self._recent, now, revision, 0.0)
        target = max(_old_enough(self._seen, now - self._keep), await self._excess())
        # Caches first: what they still showed may be read from the store.
        self._tell(max(target, self._done, _old_enough(self._recent, now - self._window)))
        if target > self._done:
            await self._store.compact(target)
            self._done = target
        return self._done

    async def _excess(self) -> int:
        if not isinstance(self._store, HistorySizedStore):
            return 0
        return await self._store.excess(self._most.bytes, self._most.writes)

    def _tell(self, revision: int) -> None:
        if self._compacted is not None and revision > self._told:
            self._told = revision
            self._compacted(revision)


def _note(seen: deque[tuple[float, int]], now: float, revision: int, between: float) -> None:
    if not seen or (seen[-1][1] != revision and now - seen[-1][0] >= between):
        seen.append((now, revision))


def _old_enough(seen: deque[tuple[float, int]], moment: float) -> int:
    """What was current at the moment: all above it happened later, and stays."""
    while len(seen) > 1 and seen[1][0] <= moment:
        seen.popleft()
    when, revision = seen[0]
    return revision if when <= moment else 0
