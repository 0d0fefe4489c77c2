"""Forgets history by age: remembers which revision the store had when, and compacts to the past.

Several replicas on one store may each run one: compacting twice is harmless.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable

from instar.storage.store import Store, StoreError

_log = logging.getLogger(__name__)


class Compactor:
    """Keeps at least ``keep`` seconds of history; looks ``samples`` times in that span.

    ``compacted`` is told each revision, so that caches can forget with the store.
    """

    def __init__(
        self,
        store: Store,
        *,
        keep: float = 300.0,
        samples: int = 5,
        clock: Callable[[], float] = time.monotonic,
        compacted: Callable[[int], None] | None = None,
    ) -> None:
        self._store, self._keep, self._clock = store, keep, clock
        self._interval = keep / samples
        self._compacted = compacted
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
        if not self._seen or self._seen[-1][1] != revision:
            self._seen.append((now, revision))
        target = self._old_enough(now)
        if target > self._done:
            await self._store.compact(target)
            self._done = target
            if self._compacted is not None:
                self._compacted(target)
        return self._done

    def _old_enough(self, now: float) -> int:
        """What was current ``keep`` seconds ago: all above it happened later, and stays."""
        while len(self._seen) > 1 and self._seen[1][0] <= now - self._keep:
            self._seen.popleft()
        moment, revision = self._seen[0]
        return revision if moment <= now - self._keep else 0
