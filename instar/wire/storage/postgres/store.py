"""PostgreSQL store: the ``Store`` contract on a schema of a database, which any number of processes
can share.

Opened by ``wire/storage/open.py``. Writes go to ``commit.py``, events come from ``feed.py``, reads
from ``reads.py``. A process uses up to four connections, opened when they are first needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from instar.base.metrics import Metric
from instar.wire.storage.coalesced_call import CoalescedCall
from instar.wire.storage.memory import check_write
from instar.wire.storage.postgres.commit import BatchWriter
from instar.wire.storage.postgres.compaction import PostgresCompaction
from instar.wire.storage.postgres.driver import Connection
from instar.wire.storage.postgres.feed import PostgresFeed
from instar.wire.storage.postgres.link import PostgresLink
from instar.wire.storage.postgres.metrics import PostgresMetrics
from instar.wire.storage.postgres.reads import PostgresReads
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.postgres.url import PostgresSettings
from instar.wire.storage.store import (
    Ended,
    Page,
    Past,
    Record,
    Sink,
    Subscription,
    Unavailable,
    Write,
)

_REVISION = "select revision from {schema}.head"
_RAISE = "update {schema}.head set revision = greatest(revision, $1)"
_TOUCH = "select {schema}.touch_1($1)"


class PostgresStore:
    """Store in one schema of a PostgreSQL database."""

    def __init__(self, settings: PostgresSettings, *, must_exist: bool = False) -> None:
        self._server = PostgresServer(settings, must_exist=must_exist)
        self._metrics = PostgresMetrics()
        self._writing = PostgresLink(self._server, "write", self._prepare_writing)
        self._asking = PostgresLink(self._server, "barrier", self._prepare_asking)
        self._reading = PostgresLink(self._server, "read")
        self._feed = PostgresFeed(self._server, self._writing, self._check_writing, self._metrics)
        self._writer = BatchWriter(self._server, self._writing, self._feed.learn, self._metrics)
        self._reads = PostgresReads(self._server, self._reading)
        self._compaction = PostgresCompaction(self._server, self._reading, self._metrics)
        # One at a time: a second call would wait for the connection, and its callers with it.
        self._revision = CoalescedCall(self._current_revision, concurrent=1)
        self._revision_sql = self._server.sql(_TOUCH if settings.strict_reads else _REVISION)
        self._revision_call: Callable[..., Awaitable[int]]
        """Asks for the revision over the newest connection of ``_asking``."""
        self._closed = False

    async def get(self, key: str) -> Record | None:
        self._check_open()
        return await self._reads.get(key)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        self._check_open()
        return await self._reads.range(prefix, start, limit, revision)

    async def past(self, key: str, *, before: int = 0, limit: int = 0) -> Past:
        self._check_open()
        return await self._reads.past(key, before, limit)

    async def commit(self, write: Write) -> int:
        self._check_open()
        check_write(write)
        return await self._writer.write(write)

    async def raise_revision(self, least: int) -> None:
        """Needs the right to update the table ``head``, which the owner of the tables has."""
        self._check_open()
        await self._asking.ask(self._server.sql(_RAISE), least)

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        self._check_open()
        return self._feed.subscribe(after, sink, ended)

    async def barrier(self) -> int:
        self._check_open()
        return await self._revision.get()

    def expect(self, revision: int) -> None:
        self._feed.expect(revision)

    async def compact(self, revision: int) -> None:
        self._check_open()
        await self._compaction.compact(revision)

    async def excess(self, most_bytes: int, most_writes: int) -> int:
        self._check_open()
        return await self._compaction.excess(most_bytes, most_writes)

    async def problems(self) -> list[str]:
        self._check_open()
        return await self._reads.problems()

    @property
    def commits(self) -> int:
        """Number of batches sent."""
        return self._metrics.commits

    def metrics(self) -> Sequence[Metric]:
        return self._metrics.all()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._writer.close()
        await self._feed.close()
        for link in (self._writing, self._asking, self._reading):
            await link.close()

    async def _current_revision(self) -> int:
        """Ask the primary; with strict reads its synchronous standby confirms that it is the
        primary."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        revision = await self._asking.run(self._ask_revision)
        self._metrics.passed_barrier(loop.time() - began)
        self._server.saw(revision)
        self._feed.expect(revision)
        return revision

    async def _prepare_asking(self, connection: Connection) -> None:
        if self._server.settings.polls:  # a pooler may give the next call to another session
            self._revision_call = partial(connection.fetchval, self._revision_sql)
        else:
            self._revision_call = (await connection.prepare(self._revision_sql)).fetchval

    def _ask_revision(self, connection: Connection) -> Awaitable[int]:
        if self._server.settings.strict_reads:
            return self._revision_call(self._writer.writer)
        return self._revision_call()

    async def _prepare_writing(self, connection: Connection) -> None:
        """Make a new connection write, and hear of the writes of other processes."""
        await self._writer.prepare(connection)
        await self._feed.listen(connection)

    def _check_writing(self) -> None:
        self._writer.check_connection()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")
