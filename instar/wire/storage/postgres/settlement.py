"""Settles a batch whose answer was lost: PostgreSQL says whether it was committed.

Called by ``commit.py``. The function ``settle_1`` of ``schema.sql`` returns the stored answers of a
batch, or makes sure that the batch can no longer be committed. It is asked over a connection of its
own, until it answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from instar.wire.storage.postgres.driver import Connection
from instar.wire.storage.postgres.link import PostgresLink
from instar.wire.storage.postgres.metrics import PostgresMetrics
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.store import StoreError, Unavailable

_log = logging.getLogger(__name__)

NOT_DURABLE = ("01000", "57P01")
"""Warnings at commit: the wait for the synchronous standby was ended before it confirmed."""
Answers = Sequence[int]
_SETTLE = "select {schema}.settle_1($1, $2)"
_SECONDS = 3600.0
"""A standby that is away may keep the answer waiting; the next attempt waits again."""
_PAUSE = 0.2


class BatchSettlement:
    """Finds out the outcome of a batch whose response was lost."""

    def __init__(self, server: PostgresServer, metrics: PostgresMetrics) -> None:
        self._server, self._metrics = server, metrics
        self._sql = server.sql(_SETTLE)
        self._link: PostgresLink | None = None
        self._closed = False

    async def outcome(self, writer: UUID, number: int) -> Answers | None:
        """Return the answers of a committed batch, or None: it never will be. Waits as long as no
        primary answers; raises ``Unavailable`` when closed before."""
        self._link = link = PostgresLink(self._server, "settle")
        try:
            while True:
                try:
                    rows = await link.run(self._question(writer, number), seconds=_SECONDS)
                except StoreError as error:
                    if self._closed:
                        raise
                    _log.warning("cannot settle a batch yet: %s", error)
                    await asyncio.sleep(_PAUSE)
                    continue
                self._metrics.settlements.add(("not committed" if rows is None else "committed",))
                return rows
        finally:
            await link.close()

    async def close(self) -> None:
        """Give up the question under way, without asking the server to cancel it."""
        self._closed = True
        if self._link is not None:
            self._link.drop()
            await self._link.close()

    def _question(
        self, writer: UUID, number: int
    ) -> Callable[[Connection], Awaitable[Answers | None]]:
        async def ask(connection: Connection) -> Answers | None:
            warnings: list[str] = []
            connection.add_log_listener(lambda _, notice: warnings.append(notice.sqlstate))
            answers: Answers | None = await connection.fetchval(self._sql, writer, number)
            if any(code in NOT_DURABLE for code in warnings):
                raise Unavailable(f"{self._server.settings}: the standby did not confirm")
            return answers

        return ask
