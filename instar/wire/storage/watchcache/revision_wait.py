"""Waiters for a revision: readers wait here until the watch cache has reached that revision, or
time out.

Used by ``cache.py``, which calls ``advance`` with each new revision.
"""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from itertools import count

from instar.base.taskless_wait import Waiter, waiter


class RevisionWaiters:
    """Heap of waiters by revision, with one timer for all."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, float, Waiter[bool]]] = []
        """Heap of (revision, sequence number, deadline, waiter)."""
        self._numbers = count()
        self._alarm: asyncio.TimerHandle | None = None

    async def wait(self, revision: int, within: float) -> bool:
        """Return whether the revision was reached in time."""
        loop = asyncio.get_running_loop()
        until, mine = loop.time() + within, waiter()
        heappush(self._waiting, (revision, next(self._numbers), until, mine))
        if self._alarm is None or until < self._alarm.when():
            self._set_alarm(loop, until)
        reached: bool = await mine
        return reached

    def advance(self, revision: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= revision:
            mine = heappop(waiting)[3]
            if not mine.done():
                mine.set_result(True)

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = loop.call_at(when, self._check, loop)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        """Time out expired waiters. One timer for all, as most revisions are reached long
        before."""
        self._alarm = None
        now = loop.time()
        for _, _, until, mine in self._waiting:
            if until <= now and not mine.done():
                mine.set_result(False)
        self._waiting = [each for each in self._waiting if not each[3].done()]
        heapify(self._waiting)
        if self._waiting:
            self._set_alarm(loop, min(each[2] for each in self._waiting))
