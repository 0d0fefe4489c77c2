"""Who waits until a revision is reached, and for how long."""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from itertools import count

from instar.base.taskless_wait import Waiter, waiter


class Reaching:
    """Knows no store: it is told how far things have come."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, float, Waiter[bool]]] = []
        """By revision; then in the order they came, until when, and who."""
        self._numbers = count()
        self._alarm: asyncio.TimerHandle | None = None

    async def wait(self, revision: int, within: float) -> bool:
        """Whether it was reached in time."""
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
        """One alarm for all, rather than a timer for each: most are reached long before."""
        self._alarm = None
        now = loop.time()
        for _, _, until, mine in self._waiting:
            if until <= now and not mine.done():
                mine.set_result(False)
        self._waiting = [each for each in self._waiting if not each[3].done()]
        heapify(self._waiting)
        if self._waiting:
            self._set_alarm(loop, min(each[2] for each in self._waiting))
