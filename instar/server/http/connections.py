"""Set of open connections: limits their memory, and closes stalled ones and all at the stop.

``http1.py`` and ``http2/connection.py`` register each connection; ``lifecycle/http_port.py`` closes
the set when the server stops. This module does not read what is sent on a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from instar.base import limits
from instar.base.supervision import report_failure

log = logging.getLogger(__name__)
_SWEEP_SECONDS = 5.0
_GOODBYE_SECONDS = 0.02
"""Time that idle clients get to close their end; most need a millisecond."""
_HEAD_START = 1.0
"""Seconds before a client can count as slow."""


class Recipient(Protocol):
    """A connection of HTTP/1.1 or a stream of HTTP/2: it sends a body and is sent a response."""

    def abort(self) -> None: ...


class TrackedConnection(Recipient, Protocol):
    """Interface of a connection in the set."""

    def close_when_idle(self) -> bool:
        """Close the connection unless it is busy. Returns whether it was idle."""
        ...

    def close_if_stalled(self, now: float) -> None: ...

    def backlog(self) -> int: ...

    def cut_off(self) -> None:
        """End the response with the most unsent bytes."""
        ...


class _Answer:
    """A large response that is being sent."""

    __slots__ = ("began", "sent", "size")

    def __init__(self, size: int, began: float) -> None:
        self.size = size
        self.sent = 0
        self.began = began

    def speed(self, now: float) -> float:
        return self.sent / max(now - self.began, 0.001)


class ConnectionSet:
    """All open connections, with the number of bytes that they hold in memory."""

    def __init__(
        self,
        most_answers: int = limits.MAX_ANSWERS_IN_FLIGHT,
        most_bodies: int = limits.MAX_BODIES_IN_FLIGHT,
    ) -> None:
        self.closing = False
        self.answering = 0
        """Bytes of the large responses that are being sent."""
        self._most_answers = most_answers
        self._most_bodies = most_bodies
        self._open: set[TrackedConnection] = set()
        self._answers: dict[Recipient, _Answer] = {}
        self._bodies: dict[Recipient, int] = {}
        self._receiving = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._left: asyncio.Event | None = None

    def add(self, connection: TrackedConnection) -> None:
        self._open.add(connection)
        if self._sweeper is None:
            loop = asyncio.get_running_loop()
            self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep)

    def discard(self, connection: TrackedConnection) -> None:
        self._open.discard(connection)
        self.answered(connection)
        self.received(connection)
        if self._left is not None:
            self._left.set()

    # --- memory --------------------------------------------------------------------------

    def answers(self, connection: Recipient, size: int) -> bool:
        """Whether a response of this size may start. The slowest clients may be disconnected for
        it."""
        if size <= self._most_answers < self.answering + size:
            self._cut_off_slowest(size)
        if self.answering + size > self._most_answers and self._answers:
            return False
        self._answers[connection] = _Answer(size, monotonic())
        self.answering += size
        return True

    def sent(self, connection: Recipient, size: int) -> None:
        answer = self._answers.get(connection)
        if answer is not None:
            answer.sent += size

    def answered(self, connection: Recipient) -> None:
        answer = self._answers.pop(connection, None)
        if answer is not None:
            self.answering -= answer.size

    def receives(self, connection: Recipient, size: int) -> bool:
        """Whether more of a large request body may be held."""
        if self._receiving + size > self._most_bodies:
            return False
        self._bodies[connection] = self._bodies.get(connection, 0) + size
        self._receiving += size
        return True

    def received(self, connection: Recipient) -> None:
        """The request body is no longer held."""
        self._receiving -= self._bodies.pop(connection, 0)

    def _cut_off_slowest(self, needed: int) -> None:
        now = monotonic()
        known = [item for item in self._answers.items() if now - item[1].began > _HEAD_START]
        for connection, answer in sorted(known, key=lambda item: item[1].speed(now)):
            if self.answering + needed <= self._most_answers:
                return
            log.warning(
                "a client is cut off: it read %d of %d bytes in %.0f s, and other responses wait",
                *(answer.sent, answer.size, now - answer.began),
            )
            self.answered(connection)
            connection.abort()

    # --- time ----------------------------------------------------------------------------

    async def close(self, grace: float) -> None:
        """Close idle connections at once; busy ones have ``grace`` seconds to finish."""
        self.closing = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._left = asyncio.Event()
        idle = {connection for connection in tuple(self._open) if connection.close_when_idle()}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._until_gone(lambda: self._open <= idle)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._until_gone(lambda: not self._open)
        for connection in tuple(self._open):
            connection.abort()

    async def _until_gone(self, done: Callable[[], bool]) -> None:
        assert self._left is not None
        while not done():
            self._left.clear()
            await self._left.wait()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep) if self._open else None
        now = monotonic()
        for connection in tuple(self._open):
            try:
                connection.close_if_stalled(now)
            except Exception as error:
                report_failure("connections", error)
                connection.abort()
        self._cut_off_longest()

    def _cut_off_longest(self) -> None:
        """Disconnect the streams with most unsent bytes: streams are not counted when they
        begin."""
        waiting = {connection: connection.backlog() for connection in self._open}
        excess = sum(waiting.values()) - self._most_answers
        for connection in sorted(waiting, key=lambda item: -waiting[item]):
            if excess <= 0:
                return
            excess -= waiting[connection]
            connection.cut_off()
