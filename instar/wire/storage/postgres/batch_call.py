"""The call that commits one batch, and what becomes of it when its answer is lost.

Called by ``commit.py`` with one batch after another. The function ``commit_1`` of ``schema.sql``
does the compare-and-swap, assigns the revisions and returns the results. A call is never cancelled,
because a cancelled commit that waits for a synchronous standby returns success before the write is
safe. If the answer is lost, PostgreSQL is asked whether the batch was committed; if not, PostgreSQL
makes sure that the call cannot commit later. A call has no task of its own: a task would take an
iteration of the event loop before the call is sent, and two after its answer.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from instar.base.fast_dataclass import dataclass
from instar.base.taskless_wait import Waiter
from instar.wire.storage.postgres.driver import Connection, Notice
from instar.wire.storage.postgres.failures import FENCED
from instar.wire.storage.postgres.link import PostgresLink
from instar.wire.storage.postgres.metrics import PostgresMetrics
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.postgres.settlement import NOT_DURABLE, Answers, BatchSettlement
from instar.wire.storage.store import StoreError, Unavailable, Write

_log = logging.getLogger(__name__)

_COMMIT = "select {schema}.commit_1($1, $2, $3, $4, $5, $6)"
_AGAIN = ("40001", "40P01", "25006")
"""Refusals that another attempt may avoid: a conflict of transactions, a demoted server."""


@dataclass(slots=True, eq=False)
class PendingWrite:
    """A write and the caller that waits for its outcome."""

    write: Write
    key: bytes
    done: Waiter[int]
    """Waiter of the calling coroutine, which may be cancelled without affecting the write."""
    since: float


class RefusedBatch(NamedTuple):
    """Nothing was written, and the batch that was sent, if one was, can no longer be committed."""

    why: StoreError
    again: bool = True
    """Whether sending it again may help."""


class _Unanswered(NamedTuple):
    """The answer to a batch is lost: whether it was committed is unknown."""

    why: StoreError


class BatchCall:
    """Commits batches of this process over one connection, one at a time."""

    def __init__(
        self, server: PostgresServer, link: PostgresLink, metrics: PostgresMetrics
    ) -> None:
        self._server, self._link, self._metrics = server, link, metrics
        self._sql = server.sql(_COMMIT)
        self._settlement = BatchSettlement(server, metrics)
        self.writer = uuid4()
        self._number = 0
        self.stamp = 0
        """A random number of the last batch."""
        self._ask: Callable[..., Awaitable[Answers]] | None = None
        self._flying: Connection | None = None
        """The connection that waits for an answer."""
        self._late_at = 0.0
        self._settling: asyncio.Task[Answers | RefusedBatch] | None = None
        """Asks over another connection, because the answer is late."""
        self._warned = False

    async def prepare(self, connection: Connection) -> None:
        """Prepare a new connection for batches."""
        connection.add_log_listener(self._hear)
        if self._server.settings.polls:  # a pooler may give the next call to another session
            self._ask = partial(connection.fetchval, self._sql)
        else:
            self._ask = (await connection.prepare(self._sql)).fetchval
        self._server.writing = connection

    async def attempt(self, batch: list[PendingWrite]) -> Answers | RefusedBatch:
        """Return the answers for the batch, without those writes whose callers have got an error
        meanwhile. Raises ``StoreError`` if the store is closed before the outcome is known."""
        try:
            connection = await self._link.ready()
        except StoreError as error:
            return RefusedBatch(error, again=isinstance(error, Unavailable))
        batch[:] = [entry for entry in batch if not entry.done.done()]
        if not batch:
            return ()
        self._number += 1
        self.stamp = secrets.randbits(63)
        self._warned = False
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcome = await self._send(connection, batch, began)
        self._metrics.committed(len(batch), loop.time() - began)
        if isinstance(outcome, _Unanswered):
            return await self._settle(outcome)
        if not isinstance(outcome, RefusedBatch) and self._warned:
            _log.error("%s: a commit was not confirmed by the standby", self._server.settings)
            unsafe = Unavailable(f"{self._server.settings}: the standby did not confirm")
            return await self._settle(_Unanswered(unsafe))
        return outcome

    async def check_connection(self) -> None:
        """Ask an idle connection for an answer, and drop it if none comes."""
        connection = await self._link.ready()
        loop = asyncio.get_running_loop()
        limit = loop.call_later(self._server.settings.timeout / 2, connection.terminate)
        try:
            await connection.fetch("select 1")
        except Exception:
            self._link.drop()
        finally:
            limit.cancel()

    def check_late(self, now: float) -> None:
        """Ask over another connection what became of a batch whose answer is late. Half of the
        writers' time is left to settle it and to send it again."""
        if self._flying is not None and self._settling is None and now >= self._late_at:
            # The network may be silent, or a standby is away. Settling ends the wait in the first
            # case, and waits like the call in the second.
            silent = Unavailable(f"{self._server.settings}: no answer in time")
            self._settling = asyncio.get_running_loop().create_task(self._outcome(silent))
            self._settling.add_done_callback(self._end_call)

    async def give_up(self) -> None:
        """Stop waiting for an outcome. To close the connection politely would cancel the call, and
        a commit that waits for the synchronous standby would be visible to others before it is
        safe."""
        self._link.drop()
        await self._settlement.close()

    async def _send(
        self, connection: Connection, batch: Sequence[PendingWrite], now: float
    ) -> Answers | RefusedBatch | _Unanswered:
        assert self._ask is not None
        self._flying, self._late_at = connection, now + self._server.settings.timeout / 2
        outcome: Answers | RefusedBatch | _Unanswered
        try:
            outcome = await self._ask(
                self.writer,
                self._number,
                self.stamp,
                [entry.key for entry in batch],
                [entry.write.value for entry in batch],
                [entry.write.expected for entry in batch],
            )
        except Exception as error:
            if self._settling is None:
                return self._judge(connection, error)
            outcome = ()
        finally:
            self._flying = None
        settling, self._settling = self._settling, None
        return outcome if settling is None else await settling

    def _end_call(self, settling: asyncio.Task[Answers | RefusedBatch]) -> None:
        if self._flying is not None and settling is self._settling:
            self._flying.terminate()

    def _judge(self, connection: Connection, error: BaseException) -> RefusedBatch | _Unanswered:
        failure = self._server.explain(error)
        if failure.code == FENCED:
            # The row of this process was removed after a day without writes: register it again.
            self.writer, self._number = uuid4(), 0
            return RefusedBatch(failure.error)
        undecided = failure.undecided or connection.is_closed()
        if failure.gone or undecided:
            self._link.drop()
        if undecided:
            return _Unanswered(failure.error)
        self._number -= 1  # the transaction was rolled back, and its number with it
        return RefusedBatch(failure.error, again=failure.code in _AGAIN)

    async def _settle(self, lost: _Unanswered) -> Answers | RefusedBatch:
        # A task, because closing a connection needs one.
        return await asyncio.get_running_loop().create_task(self._outcome(lost.why))

    async def _outcome(self, why: StoreError) -> Answers | RefusedBatch:
        """Determine whether the last batch was committed, without a time limit. Waiting writers get
        an error at their deadline, which says that the outcome is unknown."""
        answers = await self._settlement.outcome(self.writer, self._number)
        return RefusedBatch(why) if answers is None else answers

    def _hear(self, connection: Any, notice: Notice) -> None:
        if notice.sqlstate in NOT_DURABLE:
            self._warned = True
