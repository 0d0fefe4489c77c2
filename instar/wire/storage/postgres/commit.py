"""Batches of writes: one call to the server commits all writes that arrived during the last one.

``store.py`` passes every write here. One batch is in flight per process; ``batch_call.py`` sends
it and determines its outcome. A batch that was certainly not committed is sent again. Events of
this process's own writes are published from the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

from instar.base.eager_tasks import FutureDriven
from instar.base.supervision import report_failure
from instar.base.taskless_wait import Waiter, waiter
from instar.wire.storage.postgres.batch_call import BatchCall, PendingWrite, RefusedBatch
from instar.wire.storage.postgres.driver import Connection
from instar.wire.storage.postgres.link import PostgresLink
from instar.wire.storage.postgres.metrics import PostgresMetrics
from instar.wire.storage.postgres.server import PostgresServer
from instar.wire.storage.postgres.settlement import Answers
from instar.wire.storage.store import (
    Event,
    Stale,
    StoreError,
    Unavailable,
    ValueTooLarge,
    Write,
)

MOST_WRITES = 256
MOST_BYTES = 4 << 20
MOST_KEY = 2000
"""Bytes of a key; an index entry of PostgreSQL may have 2,704."""
MOST_VALUE = 16 << 20
_LOOK_SECONDS = 0.25
_CERTAIN = "nothing was written"
_UNKNOWN = "it is not known yet whether the write was executed"

Publish = Callable[[Sequence[Event], int, int], None]
"""Takes the events of a batch, the last revision, and the stamp of the batch."""


class BatchWriter:
    """Collects the writes of one process into batches."""

    def __init__(
        self,
        server: PostgresServer,
        link: PostgresLink,
        publish: Publish,
        metrics: PostgresMetrics,
    ) -> None:
        self._server, self._link, self._publish = server, link, publish
        self._call = BatchCall(server, link, metrics)
        self._waiting: list[PendingWrite] = []
        self._flying: list[PendingWrite] = []
        self._busy = False
        """Whether the connection is in use, or will be in this iteration of the event loop."""
        self._working: FutureDriven | None = None
        self._drained: asyncio.Future[None] | None = None
        self._look: asyncio.TimerHandle | None = None
        """One timer for all deadlines; it ends by itself when nothing is written."""
        self._refusal: StoreError | None = None
        """Why the batch in flight is certainly not committed, between two attempts."""
        self._closing = False

    @property
    def writer(self) -> UUID:
        return self._call.writer

    async def prepare(self, connection: Connection) -> None:
        """Prepare a new connection of the link."""
        await self._call.prepare(connection)

    async def write(self, write: Write) -> int:
        key = write.key.encode(errors="surrogateescape")
        if len(key) > MOST_KEY:
            raise ValueTooLarge(f"{write.key[:80]}…: a key of {len(key)} bytes")
        if write.value is not None and len(write.value) > MOST_VALUE:
            raise ValueTooLarge(f"{write.key}: {len(write.value)} bytes")
        if self._closing:
            raise Unavailable("the store is closed")
        loop = asyncio.get_running_loop()
        done: Waiter[int] = waiter(prompt=True)
        self._waiting.append(PendingWrite(write, key, done, loop.time()))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._begin, self._commit_all)  # with all other writes of this iteration
        return await done

    def check_connection(self) -> None:
        """Make sure that the connection still answers, if no batch is using it."""
        if not self._busy and not self._closing:
            self._busy = True
            self._begin(self._call.check_connection)

    async def close(self) -> None:
        """Finish the batch in flight, as far as the server answers, then refuse new writes."""
        self._closing = True
        if self._busy:
            self._drained = drained = asyncio.get_running_loop().create_future()
            _, running = await asyncio.wait({drained}, timeout=self._server.settings.timeout)
            if running:
                await self._call.give_up()
                _, running = await asyncio.wait({drained}, timeout=1)
            if running and self._working is not None:
                self._working.cancel()
        if self._look is not None:
            self._look.cancel()
        closed = Unavailable("the store is closed")
        for entry in (*self._flying, *self._waiting):
            _fail(entry, closed)
        self._waiting.clear()

    # -- batches -------------------------------------------------------------------------------

    def _begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._working = FutureDriven(self._use_connection(work))

    async def _use_connection(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except StoreError as error:  # closed while the outcome was asked for
            for entry in self._flying:
                _fail(entry, Unavailable(f"{error}; {_UNKNOWN}"))
        except (Exception, asyncio.CancelledError) as error:  # no writer may wait for ever
            if not self._closing:
                report_failure("postgres-commit", error)
            for entry in self._flying:
                _fail(entry, Unavailable(f"{self._server.settings}: {error}; {_UNKNOWN}"))
        finally:
            self._flying = []
            self._busy = bool(self._waiting) and not self._closing
            if self._busy:
                asyncio.get_running_loop().call_soon(self._begin, self._commit_all)
            elif self._drained is not None and not self._drained.done():
                self._drained.set_result(None)

    async def _commit_all(self) -> None:
        loop = asyncio.get_running_loop()
        if self._look is None:
            self._look = loop.call_later(_LOOK_SECONDS, self._expire, loop)
        while self._waiting:
            self._flying = self._next_batch()
            await self._commit_batch(self._flying)
            self._flying = []

    def _next_batch(self) -> list[PendingWrite]:
        """Return the writes that fit. A second write to a key waits for the outcome of the first,
        and later writes to that key stay in order."""
        batch: list[PendingWrite] = []
        rest: list[PendingWrite] = []
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

    async def _commit_batch(self, batch: list[PendingWrite]) -> None:
        """Commit the batch; send it again as long as it is certain that it was not committed."""
        pause = 0.02
        while not all(entry.done.done() for entry in batch):
            self._refusal = None
            outcome = await self._call.attempt(batch)
            if not isinstance(outcome, RefusedBatch):
                self._succeed(batch, outcome)
                return
            self._refusal = outcome.why
            if not outcome.again or self._closing:
                for entry in batch:
                    _fail(entry, outcome.why)
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)

    # -- outcomes ------------------------------------------------------------------------------

    def _succeed(self, batch: list[PendingWrite], answers: Answers) -> None:
        events = [
            Event(entry.write.key, entry.write.value, answer)
            for entry, answer in zip(batch, answers, strict=True)
            if answer > 0
        ]
        if events:
            self._server.saw(events[-1].revision)
            self._publish(events, events[-1].revision, self._call.stamp)
        if self._waiting:
            # The next batch is sent first: the callers prepare their responses while it is in
            # flight.
            asyncio.get_running_loop().call_soon(_answer, batch, answers)
            self._fail_stale(batch, answers)
        else:
            _answer(batch, answers)

    def _fail_stale(self, batch: Sequence[PendingWrite], answers: Answers) -> None:
        """Fail waiting writes that expect an older revision than one just written: no key returns
        to an old revision. One that expects an absent key may still find it deleted."""
        written = {entry.key: answer for entry, answer in zip(batch, answers, strict=True)}
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            newer = written.get(entry.key, 0)
            if 0 < entry.write.expected < newer:
                _fail(entry, Stale(entry.write.key, entry.write.expected, newer))
            else:
                self._waiting.append(entry)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Fail the writers past their deadline, while the batch continues."""
        self._look = None
        if not (self._flying or self._waiting):
            return
        self._look = loop.call_later(_LOOK_SECONDS, self._expire, loop)
        now = loop.time()
        self._call.check_late(now)
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


def _answer(batch: Sequence[PendingWrite], answers: Answers) -> None:
    for entry, answer in zip(batch, answers, strict=True):
        if answer <= 0:
            _fail(entry, Stale(entry.write.key, entry.write.expected, -1 - answer))
        elif not entry.done.done():
            entry.done.set_result(answer)


def _fail(entry: PendingWrite, error: StoreError) -> None:
    if not entry.done.done():
        entry.done.set_exception(error)
