"""How much of one turn of the event loop goes to requests, and who is next.

What needs no waiting is answered where it is read. Many connections that send many requests at once
would so keep the loop from looking at anybody else: all of a turn's connections are served before
it listens again. So requests have a budget in each turn, and what goes beyond stands in line: first
those who wait with nothing answered yet, then those who sent several requests at once. Knows no
HTTP.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from instar.base import limits


class Waiting(Protocol):
    """A connection with something to read or to answer."""

    def take_turn(self) -> None: ...


class Turns:
    def __init__(
        self, seconds: float = limits.TURN_SECONDS, clock: Callable[[], float] = monotonic
    ) -> None:
        self._seconds, self._clock = seconds, clock
        self._until = 0.0
        self._announced = False
        self._new: deque[Waiting] = deque()
        self._more: deque[Waiting] = deque()

    def admit(self, now: float) -> bool:
        """Whether what has just come can be looked at in this turn."""
        if self._announced:
            return now < self._until and not self._new
        self._announce(now)
        return True

    def wait(self, connection: Waiting, *, new: bool) -> None:
        """Until it is called. ``new``: nothing it sent together with this was answered before."""
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
        if self._more:  # each turn one at least: new ones may come for ever
            self._more.popleft().take_turn()
        while (self._new or self._more) and self._clock() < self._until:
            (self._new or self._more).popleft().take_turn()
