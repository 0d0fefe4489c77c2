"""Group commit: writes that arrive while a transaction becomes durable form the next one.

Used by ``sqlite/store.py``. Compare-and-swap is decided in the event loop against the committed and
the pending writes, and rows are inserted there too, which touches no disk. COMMIT waits for the
disk and runs in a thread as a single call. On a fast disk, or for a single writer, COMMIT runs in
the event loop, because the thread switch would take longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, Protocol

from instar.base.fast_dataclass import dataclass
from instar.base.supervision import report_failure
from instar.base.taskless_wait import Waiter, waiter
from instar.wire.storage.revision_index import RevisionIndex
from instar.wire.storage.store import Event, Stale, Unavailable, Write

_FAST_COMMIT_SECONDS = 0.002
"""Commits faster than this run in the event loop, because a thread switch takes longer. A disk that
becomes slower blocks the event loop for one commit only."""
_WEIGHT = 0.2
_IN_DOUBT = "; it is not known whether the write will be there after a restart"
_INSERT = "INSERT INTO log(revision, key, value) VALUES (?, ?, ?)"

_log = logging.getLogger(__name__)
Publish = Callable[[Sequence[Event], int], None]


@dataclass(slots=True, eq=False)
class _Entry:
    """A pending write; ``parent`` is the pending write of the same key that it builds upon."""

    event: Event
    parent: _Entry | None
    done: Waiter[int]
    """Waiter of the writing caller. The caller may be cancelled without affecting the write."""
    decided: asyncio.Future[None] | None = None
    """Created for other writers of the key that wait for the outcome of this write."""

    async def outcome(self) -> None:
        if self.decided is None:
            self.decided = asyncio.get_running_loop().create_future()
        await asyncio.shield(self.decided)


@dataclass(slots=True, eq=False)
class _Statement:
    sql: str
    rows: Sequence[tuple[Any, ...]]
    done: asyncio.Future[None]


@dataclass(slots=True, eq=False)
class _Batch:
    entries: list[_Entry]
    chores: list[_Statement]


class WatchedFiles(Protocol):
    """The files of a connection, which no other program may truncate."""

    def check_sizes(self) -> None:
        """Raise if a file became shorter since the last commit."""
        ...

    def note_sizes(self) -> None: ...


class GroupCommit:
    """Collects concurrent writes of one SQLite connection into transactions."""

    def __init__(
        self,
        name: str,
        connection: sqlite3.Connection,
        index: RevisionIndex,
        publish: Publish,
        files: WatchedFiles,
    ) -> None:
        self._name, self._connection, self._index, self._publish = name, connection, index, publish
        self._files = files
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-commit")
        self._next = index.revision
        self._latest: dict[str, _Entry] = {}
        self._waiting = _Batch([], [])
        self._busy = False  # a transaction is open, or scheduled
        self._this_turn = 0  # writes in this iteration of the event loop
        self._alone = True  # whether the previous iteration had at most one write
        self._closing = False
        self._drained: asyncio.Future[None] | None = None
        self.commits = 0
        self._failing = False
        """Whether the last transaction failed."""
        self._committing = False
        """Whether the current batch has reached its commit to the disk."""
        self._usual_seconds = _FAST_COMMIT_SECONDS / 2

    async def write(self, write: Write, later: Sequence[bytes] = ()) -> int:
        """Write, and store the values ``later`` under the same key in the same transaction."""
        while (actual := self._head(write.key)) != write.expected:
            pending = self._latest.get(write.key)
            if pending is None:
                raise Stale(write.key, write.expected, actual)
            # A caller that gets ``Stale`` must find the newer revision when it reads. So wait until
            # the pending write is committed, or has failed and this one may proceed.
            await pending.outcome()
        self._check_open()
        loop = asyncio.get_running_loop()
        done: Waiter[int] = waiter()
        self._enlist(write.key, write.value, done)
        for value in later:
            self._enlist(write.key, value, done)  # the first entry's waiter reports for all
        if self._may_commit_alone(loop):
            self._busy = True
            self._begin(loop)
        else:
            self._schedule(loop)
        return await done

    def _enlist(self, key: str, value: bytes | None, done: Waiter[int]) -> None:
        self._next += 1
        entry = _Entry(Event(key, value, self._next), self._latest.get(key), done)
        self._latest[key] = entry
        self._waiting.entries.append(entry)

    def raise_next(self, least: int) -> None:
        """Give every later write a revision above ``least``."""
        self._next = max(self._next, least)

    def under_way(self, prefix: str) -> bool:
        return any(key.startswith(prefix) for key in self._latest)

    async def execute(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement as part of the next transaction."""
        self._check_open()
        loop = asyncio.get_running_loop()
        chore = _Statement(sql, rows, loop.create_future())
        self._waiting.chores.append(chore)
        self._schedule(loop)
        await asyncio.shield(chore.done)

    async def close(self) -> None:
        """Commit the accepted writes, then refuse new ones."""
        self._closing = True
        if self._busy:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained
        self._thread.shutdown()

    def _check_open(self) -> None:
        if self._closing:
            raise Unavailable("the store is closed")

    def _head(self, key: str) -> int:
        entry = self._latest.get(key)
        if entry is None:
            return self._index.head(key)
        return 0 if entry.event.value is None else entry.event.revision

    def _may_commit_alone(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Return whether to commit at once: a single writer on a fast disk need not wait for
        others."""
        if not self._this_turn:
            loop.call_soon(self._next_turn)
        self._this_turn += 1
        first, quick = self._this_turn == 1, self._usual_seconds < _FAST_COMMIT_SECONDS
        return self._alone and first and quick and not self._busy

    def _next_turn(self) -> None:
        self._alone = self._this_turn <= 1
        self._this_turn = 0

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._busy:
            self._busy = True
            loop.call_soon(self._begin, loop)  # with all other writes of this loop iteration

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting, _Batch([], [])
        try:
            self._files.check_sizes()
            self._connection.execute("BEGIN IMMEDIATE")
            rows = [(entry.event[2], entry.event[0], entry.event[1]) for entry in batch.entries]
            self._connection.executemany(_INSERT, rows)
            for chore in batch.chores:
                self._connection.executemany(chore.sql, chore.rows)
            if self._usual_seconds >= _FAST_COMMIT_SECONDS:
                self._thread.submit(self._commit_apart, loop, batch)
                return
        except Exception as error:
            self._committing = False
            self._finish(loop, batch, error)
        else:
            self._finish(loop, batch, self._commit())

    def _commit(self) -> Exception | None:
        """Commit the open transaction and update the average commit time."""
        began, self._committing = perf_counter(), True
        try:
            self._connection.commit()
            self._files.note_sizes()
        except Exception as error:
            return error
        self._usual_seconds += (perf_counter() - began - self._usual_seconds) * _WEIGHT
        return None

    def _commit_apart(self, loop: asyncio.AbstractEventLoop, batch: _Batch) -> None:
        failure = self._commit()
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._finish, loop, batch, failure)

    def _finish(
        self, loop: asyncio.AbstractEventLoop, batch: _Batch, failure: Exception | None
    ) -> None:
        try:
            if failure is None:
                self._succeed(batch)
            else:
                self._fail(batch, failure, committing=self._committing)
        except Exception as error:  # no writer may wait for ever
            report_failure("group-commit", error)
            for entry in batch.entries:
                if not entry.done.done():
                    entry.done.set_exception(Unavailable(f"{self._name}: {error}"))
        if self._waiting.entries or self._waiting.chores:
            loop.call_soon(self._begin, loop)
            return
        self._busy = False
        if self._drained is not None:
            self._drained.set_result(None)

    def _succeed(self, batch: _Batch) -> None:
        self.commits += 1
        if self._failing and batch.entries:  # a probe may fit on a disk where no object does
            self._failing = False
            _log.warning("writes to %s succeed again", self._name)
        events = [entry.event for entry in batch.entries]
        for event in events:
            self._index.apply(event.key, event.revision, event.value is None)
        if events:
            self._publish(events, events[-1].revision)
        for entry in batch.entries:
            self._decide(entry)
            if not entry.done.done():
                entry.done.set_result(entry.event.revision)
        for chore in batch.chores:
            chore.done.set_result(None)

    def _fail(self, batch: _Batch, failure: Exception, *, committing: bool) -> None:
        """Fail every write of the batch, and the waiting writes that build upon them. If the disk
        failed during a commit, the batch may be in the file after a restart."""
        # If the rollback fails too, the next BEGIN fails. No waiter may be left unresolved here.
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.rollback()
        broken, unknown = set(batch.entries), set(batch.entries) if committing else set()
        for entry in self._waiting.entries:
            if entry.parent in broken:
                broken.add(entry)
        self._waiting.entries = [entry for entry in self._waiting.entries if entry not in broken]
        error = f"{self._name}: {failure}"
        if not self._failing:  # once for all writes until one succeeds
            self._failing = True
            _log.error("cannot write to %s, writes are refused: %s", self._name, failure)
        for entry in sorted(broken, key=lambda entry: entry.event.revision):
            self._decide(entry)
            if not entry.done.done():
                doubt = _IN_DOUBT if entry in unknown else ""
                entry.done.set_exception(Unavailable(error + doubt))
        for chore in batch.chores:
            chore.done.set_exception(Unavailable(error))

    def _decide(self, entry: _Entry) -> None:
        entry.parent = None
        if self._latest.get(entry.event.key) is entry:
            del self._latest[entry.event.key]
        if entry.decided is not None:
            entry.decided.set_result(None)
