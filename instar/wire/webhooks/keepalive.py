"""Pool of keep-alive connections of one webhook, most recently used first.

Used by ``https.py``.
"""

from __future__ import annotations

import asyncio

from instar.wire.webhooks.http1_client import ClientConnection


class KeptConnections:
    """All open connections of one client; idle ones are closed after a while."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._open: set[ClientConnection] = set()
        self._idle: list[ClientConnection] = []
        """Idle connections, the longest idle first."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Event | None = None
        self.closed = False

    def take(self) -> ClientConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
        return None

    def add(self, connection: ClientConnection) -> None:
        """Add a new connection, which is in use."""
        if connection.transport is not None:
            self._open.add(connection)
            connection.on_lost = self._forget

    def give_back(self, connection: ClientConnection) -> None:
        if self.closed or not connection.reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = loop.call_later(self._idle_seconds, self._sweep)

    async def close(self) -> None:
        """Close all connections, including those with a call in progress."""
        self.closed = True
        self._idle.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self._open):
            connection.abort()
        if self._open:
            self._emptied = self._emptied or asyncio.Event()
            await self._emptied.wait()

    def _forget(self, connection: ClientConnection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if not self._open and self._emptied is not None:
            self._emptied.set()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = None
        while self._idle and self._idle[0].idle_since + self._idle_seconds <= loop.time():
            self._idle.pop(0).abort()
        if self._idle:
            due = self._idle[0].idle_since + self._idle_seconds
            self._sweeper = loop.call_at(due, self._sweep)
