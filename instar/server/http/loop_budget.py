"""Budget of the event loop: how much of one turn is spent on requests, and which come next.

``http1.py`` asks it before it serves what a connection has received. A request that needs no
waiting is answered as soon as it is read, and all readable connections are served before the loop
polls again, so many requests at once would delay all other work. Requests beyond the budget wait
for the next turn. In the next turn, connections that have had no response yet are served first, and
connections with pipelined requests last.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from instar.base import limits


class Waiting(Protocol):
    """A connection with data to parse or requests to serve."""

    def take_turn(self) -> None: ...


class LoopBudget:
    """The budget of the current turn, and the connections that wait for the next."""

    def __init__(
        self, seconds: float = limits.TURN_SECONDS, clock: Callable[[], float] = monotonic
    ) -> None:
        self._seconds, self._clock = seconds, clock
        self._until = 0.0
        self._announced = False
        self._new: deque[Waiting] = deque()
        self._more: deque[Waiting] = deque()

    def admit(self, now: float) -> bool:
        """Whether data that was just received may be served in this turn."""
        if self._announced:
            return now < self._until and not self._new
        self._announce(now)
        return True

    def wait(self, connection: Waiting, *, new: bool) -> None:
        """Queue the connection for a later turn. ``new``: none of its requests was answered yet."""
        (self._new if new else self._more).append(connection)
        if not self._announced:
            self._announce(self._clock())

    def _announce(self, now: float) -> None:
        self._until = now + self._seconds
        self._announced = True
        asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._announced = False
        if not self._new and not self._more:
            return
        self._announce(self._clock())
        if self._more:  # at least one in each turn: new connections may keep coming
            self._more.popleft().take_turn()
        while (self._new or self._more) and self._clock() < self._until:
            (self._new or self._more).popleft().take_turn()
