"""Batches of writes: one call to the server commits all writes that arrived during the last one.

``store.py`` passes every write here. The function ``commit_1`` of ``schema.sql`` does the
compare-and-swap, assigns the revisions and returns the results. One batch is in flight per process.
If the answer to a call is lost, PostgreSQL is asked whether the batch was committed; if not,
PostgreSQL makes sure that the first call cannot commit later, and the batch is sent again. A call
is never cancelled, because a cancelled commit that waits for a synchronous standby returns success
before the write is safe.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from instar.base.eager_tasks import TasklessCoroutine, start
from instar.base.fast_dataclass import dataclass
from instar.base.supervision import is_being_cancelled, report_failure
from instar.base.taskless_wait import Waiter, waiter
from instar.wire.storage.postgres.driver import Connection, Notice
from instar.wire.storage.postgres.failures import FENCED
from instar.wire.storage.postgres.link import PostgresLink
from instar.wire.storage.postgres.metrics import PostgresMetrics
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.postgres.settlement import NOT_DURABLE, Answers, BatchSettlement
from instar.wire.storage.store import (
    Event,
    Stale,
    StoreError,
    Unavailable,
    ValueTooLarge,
    Write,
)

_log = logging.getLogger(__name__)

MOST_WRITES = 256
MOST_BYTES = 4 << 20
MOST_KEY = 2000
"""Bytes of a key; an index entry of PostgreSQL may have 2,704."""
MOST_VALUE = 16 << 20
_COMMIT = "select {schema}.commit_1($1, $2, $3, $4, $5, $6)"
_LOOK_SECONDS = 0.25
_AGAIN = ("40001", "40P01", "25006")
"""Refusals that another attempt may avoid: a conflict of transactions, a demoted server."""
_CERTAIN = "nothing was written"
_UNKNOWN = "it is not known yet whether the write was executed"

Publish = Callable[[Sequence[Event], int, int], None]
"""Takes the events of a batch, the last revision, and the stamp of the batch."""


@dataclass(slots=True, eq=False)
class _Entry:
    write: Write
    key: bytes
    done: Waiter[int]
    """Waiter of the calling coroutine, which may be cancelled without affecting the write."""
    since: float


class _Unanswered(NamedTuple):
    """The answer to a batch is lost: whether it was committed is unknown."""

    why: StoreError


class _Refused(NamedTuple):
    """Nothing was written, and the batch that was sent, if one was, can no longer be committed."""

    why: StoreError
    again: bool = True
    """Whether sending it again may help."""


class BatchWriter:
    """Collects the writes of one process into batches."""

    def __init__(
        self,
        server: PostgresServer,
        link: PostgresLink,
        publish: Publish,
        metrics: PostgresMetrics,
    ) -> None:
        self._server, self._link, self._publish, self._metrics = server, link, publish, metrics
        self._commit_sql = server.sql(_COMMIT)
        self._settlement = BatchSettlement(server, metrics)
        self._me = uuid4()
        self._number, self._stamp = 0, 0
        self._waiting: list[_Entry] = []
        self._flying: list[_Entry] = []
        self._pumping: asyncio.Task[None] | TasklessCoroutine | None = None
        self._due = False
        self._look: asyncio.TimerHandle | None = None
        """One timer for all deadlines; it ends by itself when nothing is written."""
        self._late: Callable[[], None] | None = None
        """Ends the wait for the call in flight, from ``_late_at`` on."""
        self._late_at = 0.0
        self._warned = False
        self._refusal: StoreError | None = None
        """Why the batch in flight is certainly not committed, between two attempts."""
        self._listened: Connection | None = None
        self._closing = False

    @property
    def writer(self) -> UUID:
        return self._me

    async def write(self, write: Write) -> int:
        key = write.key.encode(errors="surrogateescape")
        if len(key) > MOST_KEY:
            raise ValueTooLarge(f"{write.key[:80]}…: a key of {len(key)} bytes")
        if write.value is not None and len(write.value) > MOST_VALUE:
            raise ValueTooLarge(f"{write.key}: {len(write.value)} bytes")
        if self._closing:
            raise Unavailable("the store is closed")
        loop = asyncio.get_running_loop()
        done: Waiter[int] = waiter()
        self._waiting.append(_Entry(write, key, done, loop.time()))
        if not self._due and self._pumping is None:
            self._due = True
            loop.call_soon(self._begin, loop)  # with all other writes of this loop iteration
        return await done

    async def close(self) -> None:
        """Finish the batch in flight, as far as the server answers, then refuse new writes."""
        self._closing = True
        pumping = self._pumping
        if isinstance(pumping, asyncio.Task):
            _, running = await asyncio.wait({pumping}, timeout=self._server.settings.timeout)
            if running:
                # To close the connection politely would cancel the call, and a commit that waits
                # for the synchronous standby would be visible to others before it is safe.
                self._link.drop()
                await self._settlement.close()
                await asyncio.wait({pumping}, timeout=1)
                pumping.cancel()
        if self._look is not None:
            self._look.cancel()
        closed = Unavailable("the store is closed")
        for entry in (*self._flying, *self._waiting):
            _fail(entry, closed)
        self._waiting.clear()

    # -- batches -------------------------------------------------------------------------------

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = False
        self._pumping = start(self._pump(loop))

    async def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._look is None:
            self._look = loop.call_later(_LOOK_SECONDS, self._expire, loop)
        try:
            while self._waiting:
                self._flying = self._next_batch()
                await self._commit_batch(self._flying)
                self._flying = []
        except StoreError as error:  # closed while the outcome was asked for
            for entry in self._flying:
                _fail(entry, Unavailable(f"{error}; {_UNKNOWN}"))
        except (Exception, asyncio.CancelledError) as error:  # no writer may wait for ever
            if is_being_cancelled(error):
                raise
            report_failure("postgres-commit", error)
            for entry in self._flying:
                _fail(entry, Unavailable(f"{self._server.settings}: {error}; {_UNKNOWN}"))
        finally:
            self._pumping, self._flying = None, []
            if self._waiting and not self._closing:
                self._begin(loop)

    def _next_batch(self) -> list[_Entry]:
        """Return the writes that fit. A second write to a key waits for the outcome of the first,
        and later writes to that key stay in order."""
        batch: list[_Entry] = []
        rest: list[_Entry] = []
        keys: set[bytes] = set()
        size = 0
        for entry in self._waiting:
            length = len(entry.write.value or b"")
            fits = len(batch) < MOST_WRITES and (not batch or size + length <= MOST_BYTES)
            if fits and entry.key not in keys:
                batch.append(entry)
                size += length
            else:
                rest.append(entry)
            keys.add(entry.key)
        self._waiting = rest
        return batch

    async def _commit_batch(self, batch: list[_Entry]) -> None:
        """Commit the batch; send it again as long as it is certain that it was not committed."""
        pause = 0.02
        while not all(entry.done.done() for entry in batch):
            outcome = await self._attempt(batch)
            if not isinstance(outcome, _Refused):
                self._succeed(batch, outcome)
                return
            self._refusal = outcome.why
            if not outcome.again or self._closing:
                for entry in batch:
                    _fail(entry, outcome.why)
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)

    async def _attempt(self, batch: list[_Entry]) -> Answers | _Refused:
        try:
            connection = await self._link.ready()
            self._hear_warnings(connection)
        except StoreError as error:
            return _Refused(error, again=isinstance(error, Unavailable))
        except Exception as error:  # it was closed in this very moment
            self._link.drop()
            return _Refused(self._server.explain(error).error)
        # Writers that have received an error in the meantime are left out.
        batch[:] = [entry for entry in batch if not entry.done.done()]
        if not batch:
            return ()
        self._number += 1
        self._stamp = secrets.randbits(63)
        self._refusal, self._warned = None, False
        began = asyncio.get_running_loop().time()
        outcome = await self._send(connection, batch)
        self._metrics.committed(len(batch), asyncio.get_running_loop().time() - began)
        if isinstance(outcome, _Unanswered):
            return await self._settled(outcome)
        if not isinstance(outcome, _Refused) and self._warned:
            _log.error("%s: a commit was not confirmed by the standby", self._server.settings)
            unsafe = Unavailable(f"{self._server.settings}: the standby did not confirm")
            return await self._settled(_Unanswered(unsafe))
        return outcome

    async def _send(
        self, connection: Connection, batch: list[_Entry]
    ) -> Answers | _Refused | _Unanswered:
        loop = asyncio.get_running_loop()
        call = loop.create_task(
            connection.fetchval(
                self._commit_sql,
                self._me,
                self._number,
                self._stamp,
                [entry.key for entry in batch],
                [entry.write.value for entry in batch],
                [entry.write.expected for entry in batch],
            )
        )
        if not await self._answered(call, loop):
            # The network may be silent, or a standby is away. Settling on another connection
            # ends the wait in the first case, and waits like this call in the second.
            silent = Unavailable(f"{self._server.settings}: no answer in time")
            settling = loop.create_task(self._settled(_Unanswered(silent)))
            await asyncio.wait({call, settling}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                connection.terminate()
            await asyncio.wait({call, settling})
            _read(call)
            return settling.result()
        error = call.exception()
        if error is None:
            answers: Answers = call.result()
            return answers
        return self._judge(connection, error)

    async def _answered(self, call: asyncio.Task[Any], loop: asyncio.AbstractEventLoop) -> bool:
        """Wait for the call, without cancelling it, and leave half of the writers' time to settle
        it and to send it again."""
        over: asyncio.Future[None] = loop.create_future()

        def finish(_: object = None) -> None:
            if not over.done():
                over.set_result(None)

        call.add_done_callback(finish)
        self._late, self._late_at = finish, loop.time() + self._server.settings.timeout / 2
        await over
        self._late = None
        return call.done()

    def _judge(self, connection: Connection, error: BaseException) -> _Refused | _Unanswered:
        failure = self._server.explain(error)
        if failure.code == FENCED:
            # The row of this process was removed after a day without writes: register it again.
            self._me, self._number = uuid4(), 0
            return _Refused(failure.error)
        undecided = failure.undecided or connection.is_closed()
        if failure.gone or undecided:
            self._link.drop()
        if undecided:
            return _Unanswered(failure.error)
        self._number -= 1  # the transaction was rolled back, and its number with it
        return _Refused(failure.error, again=failure.code in _AGAIN)

    async def _settled(self, lost: _Unanswered) -> Answers | _Refused:
        """Determine whether the last batch was committed, without a time limit. Waiting writers get
        an error at their deadline, which says that the outcome is unknown."""
        answers = await self._settlement.outcome(self._me, self._number)
        return _Refused(lost.why) if answers is None else answers

    def _hear_warnings(self, connection: Connection) -> None:
        if self._listened is not connection:
            self._listened = self._server.writing = connection
            connection.add_log_listener(self._hear)

    def _hear(self, connection: Any, notice: Notice) -> None:
        if notice.sqlstate in NOT_DURABLE:
            self._warned = True

    # -- outcomes ------------------------------------------------------------------------------

    def _succeed(self, batch: list[_Entry], answers: Answers) -> None:
        events: list[Event] = []
        accepted: dict[bytes, int] = {}
        for entry, answer in zip(batch, answers, strict=True):
            if answer > 0:
                events.append(Event(entry.write.key, entry.write.value, answer))
                accepted[entry.key] = answer
        if events:
            self._server.saw(events[-1].revision)
            self._publish(events, events[-1].revision, self._stamp)
        for entry, answer in zip(batch, answers, strict=True):
            if answer > 0:
                if not entry.done.done():
                    entry.done.set_result(answer)
            else:
                _fail(entry, Stale(entry.write.key, entry.write.expected, -1 - answer))
        self._fail_stale(accepted)

    def _fail_stale(self, accepted: dict[bytes, int]) -> None:
        """Fail waiting writes that expect an older revision than one just written: no key returns
        to an old revision. One that expects an absent key may still find it deleted."""
        if not self._waiting:
            return
        rest = []
        for entry in self._waiting:
            newer = accepted.get(entry.key, 0)
            if 0 < entry.write.expected < newer:
                _fail(entry, Stale(entry.write.key, entry.write.expected, newer))
            else:
                rest.append(entry)
        self._waiting = rest

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Fail the writers past their deadline, while the batch continues."""
        self._look = None
        if not (self._flying or self._waiting):
            return
        self._look = loop.call_later(_LOOK_SECONDS, self._expire, loop)
        now = loop.time()
        if self._late is not None and now >= self._late_at:
            self._late()
        limit = now - self._server.settings.timeout - _LOOK_SECONDS
        flying, waiting = self._deadline_texts()
        for entry in self._flying:
            if entry.since < limit:
                _fail(entry, Unavailable(flying))
        if self._waiting and self._waiting[0].since < limit:
            late = [entry for entry in self._waiting if entry.since < limit]
            self._waiting = [entry for entry in self._waiting if entry.since >= limit]
            for entry in late:
                _fail(entry, Unavailable(waiting))

    def _deadline_texts(self) -> tuple[str, str]:
        """Return the error texts for late writers of the batch in flight and of later batches."""
        if self._refusal is not None:
            return (f"{self._refusal}; {_CERTAIN}",) * 2
        late = f"{self._server.settings}: no answer in time"
        return f"{late}; {_UNKNOWN}", f"{late}; {_CERTAIN}"


def _fail(entry: _Entry, error: StoreError) -> None:
    if not entry.done.done():
        entry.done.set_exception(error)


def _read(call: asyncio.Task[Any]) -> None:
    """Retrieve the outcome, so that asyncio does not report it as never retrieved."""
    if not call.cancelled():
        call.exception()
