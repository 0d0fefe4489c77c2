"""One connection of a store, which is opened on first use and reopened after it breaks.

A store has four such connections, each for one purpose: writes, consistent reads, other reads, the
feed (``store.py`` makes them). A call that fails here is repeated until its deadline, on the
current primary. ``commit.py`` uses the connection itself instead, because a write must not be
repeated before the outcome of the first attempt is known.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from instar.wire.storage.postgres.driver import Connection, Row
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.store import StoreError, Unavailable

T = TypeVar("T")
Prepare = Callable[[Connection], Awaitable[None]]
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_GOODBYE_SECONDS = 1.0


class PostgresLink:
    """One connection to the primary, opened again when it breaks."""

    def __init__(
        self, server: PostgresServer, purpose: str, prepare: Prepare | None = None
    ) -> None:
        """``prepare`` is called with each new connection before its first use."""
        self._server, self._purpose, self._prepare = server, purpose, prepare
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    async def ready(self) -> Connection:
        """Return the connection, opened if need be. Raises ``StoreError``."""
        connection = self._connection
        if connection is not None and not connection.is_closed():
            return connection
        if self._closed:
            raise Unavailable("the store is closed")
        if self._opening is None:
            # A separate task: several callers wait for it, and the driver's timeouts need one.
            self._opening = asyncio.get_running_loop().create_task(self._open())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    async def _open(self) -> Connection:
        connection = await self._server.connect(self._purpose)
        if self._prepare is not None:
            try:
                await self._prepare(connection)
            except Exception as error:
                connection.terminate()
                raise self._server.explain(error).error from error
        return connection

    def _opened(self, opening: asyncio.Task[Connection]) -> None:
        self._opening = None
        if opening.cancelled() or opening.exception() is not None:
            return
        self._connection = opening.result()
        if self._closed:
            self.drop()

    def drop(self) -> None:
        """Drop the connection without notifying the server, because that could block on an
        unresponsive network."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def ask(self, sql: str, *arguments: Any) -> Sequence[Row]:
        """Return the rows of an idempotent statement."""
        return await self.run(lambda connection: connection.fetch(sql, *arguments))

    async def run(
        self, work: Callable[[Connection], Awaitable[T]], seconds: float | None = None
    ) -> T:
        """Run idempotent work, and retry it until the deadline. Raises ``Unavailable``."""
        async with self._turn:
            try:
                return await self._attempt(work, seconds)
            except Unavailable as error:
                return await self._insist(work, seconds, error)

    async def _insist(
        self, work: Callable[[Connection], Awaitable[T]], seconds: float | None, error: StoreError
    ) -> T:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._server.settings.timeout, _FIRST_PAUSE
        while loop.time() + pause < deadline and not self._closed:
            await asyncio.sleep(pause * random.uniform(0.7, 1.3))
            pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                return await self._attempt(work, seconds)
            except Unavailable as again:
                error = again
        raise error

    async def _attempt(
        self, work: Callable[[Connection], Awaitable[T]], seconds: float | None
    ) -> T:
        connection = await self.ready()
        loop = asyncio.get_running_loop()
        # Ending the connection ends the call, also if the network does not respond. The driver's
        # own timeout would first ask the server to cancel.
        limit = self._server.settings.timeout if seconds is None else seconds
        deadline = loop.call_later(limit, connection.terminate)
        try:
            return await work(connection)
        except asyncio.CancelledError:
            self.drop()  # it is in the middle of a call
            raise
        except StoreError:
            raise
        except Exception as error:
            failure = self._server.explain(error)
            if failure.gone or connection.is_closed():
                self.drop()
            raise failure.error from error
        finally:
            deadline.cancel()

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            # The driver leaves a socket open if it is interrupted, so let it finish.
            await asyncio.wait({self._opening}, timeout=_GOODBYE_SECONDS)
        if self._opening is not None:
            self._opening.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            await _close_cleanly(connection)
        await asyncio.sleep(0)  # the transport of a dropped connection closes in its own turn


async def _close_cleanly(connection: Connection) -> None:
    """Close with a Terminate message, so that the server does not log a lost connection."""
    try:
        await connection.close(timeout=_GOODBYE_SECONDS)
    except Exception:
        connection.terminate()
