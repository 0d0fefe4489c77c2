"""SQLite store, the default: one append-only table in one file; the revision is the row id.

Opened by ``wire/storage/open.py``. The index in memory (``revision_index.py``) has each key's
revisions, so SQLite is queried only for values, by row. ``group_commit.py`` does the writes.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from time import monotonic

from instar.wire.storage.event_followers import Followers
from instar.wire.storage.group_commit import GroupCommit
from instar.wire.storage.keys import collection_of
from instar.wire.storage.memory import check_write
from instar.wire.storage.sqlite.backup import BackupJob
from instar.wire.storage.sqlite.file import SqliteFile
from instar.wire.storage.sqlite.value_rows import SqliteValues
from instar.wire.storage.store import (
    Ended,
    Event,
    Logged,
    Page,
    Past,
    Record,
    Sink,
    StoreError,
    Subscription,
    Unavailable,
    ValueTooLarge,
    Write,
)

_CHUNK = 500
_FEW = 500
_ROW = "SELECT key, value FROM log WHERE revision = ?"
_ALL = "SELECT revision, key, value FROM log WHERE revision <= ? ORDER BY revision"
_SCAN_PAYS = 4
"""Cost of looking up one row, in rows read sequentially; decides when to scan instead."""
_VALUE = "SELECT value FROM log WHERE revision = ?"
_SIZE = "SELECT ifnull(length(value), 0) FROM log WHERE revision = ?"
_DELETE = "DELETE FROM log WHERE revision = ?"
_TOUCH = "UPDATE compaction SET revision = revision"
_IDENTITY_SECONDS = 0.5
_COMPACT = "UPDATE compaction SET revision = ?"


class SqliteStore:
    """Store in one SQLite file, which this process alone may write."""

    def __init__(self, path: str) -> None:
        """Open the file, or create it. Raises ``StoreError`` when that cannot be done."""
        self._file = SqliteFile(path)
        self._index = self._file.index
        self._followers = Followers()
        self._writer = GroupCommit(
            str(self._file.path),
            self._file.writer,
            self._index,
            self._followers.publish,
            self._file,
        )
        self._max_value = self._file.writer.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) - 4096
        self._compacting = asyncio.Lock()
        self._backup = BackupJob(self._file)
        self._closed = False
        self._identified = 0.0
        self._shelf: sqlite3.Connection | None = None

    def values(self) -> SqliteValues:
        with self._reading():
            if self._shelf is None:
                self._shelf = self._file.another_reader()
            return SqliteValues(str(self._file.path), self._shelf)

    @property
    def commits(self) -> int:
        """Number of committed transactions."""
        return self._writer.commits

    async def get(self, key: str) -> Record | None:
        self._check_open()
        revision = self._index.head(key)
        if not revision:
            return None
        with self._reading():
            (value,) = self._file.reader.execute(_VALUE, (revision,)).fetchone()
        return Record(key, value, revision)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        self._check_open()
        at = self._index.readable(revision)
        found, more = self._index.select(prefix, start, limit, at)
        with self._reading():
            values = self._values([row for _, row in found])
        return Page([Record(key, values[row], row) for key, row in found], at, more)

    async def commit(self, write: Write) -> int:
        self._check_open()
        self._check_identity()
        check_write(write)
        if write.value is not None and len(write.value) > self._max_value:
            raise ValueTooLarge(f"{write.key}: {len(write.value)} bytes")
        return await self._writer.write(write)

    async def commit_chain(self, write: Write, later: Sequence[bytes]) -> int:
        self._check_open()
        self._check_identity()
        check_write(write)
        for value in (write.value or b"", *later):
            if len(value) > self._max_value:
                raise ValueTooLarge(f"{write.key}: {len(value)} bytes")
        return await self._writer.write(write, later)

    def under_way(self, prefix: str) -> bool:
        return self._writer.under_way(prefix)

    async def raise_revision(self, least: int) -> None:
        self._check_open()
        self._writer.raise_next(least)

    async def past(self, key: str, *, before: int = 0, limit: int = 0) -> Past:
        self._check_open()
        found, more = self._index.past(key, before, limit)
        with self._reading():
            values = self._values([revision for revision in found if revision > 0])
        events = [Event(key, values.get(each), abs(each)) for each in found]
        return Past(events, more, self._index.compacted)

    async def excess(self, most_bytes: int, most_writes: int) -> int:
        """Return the revision to compact to. Sizes are queried here in chunks, not by writers."""
        self._check_open()
        wanted = self._index.unweighed()
        for start in range(0, len(wanted), _CHUNK):
            self._check_open()
            with self._reading():
                self._index.weigh(self._sizes(wanted[start : start + _CHUNK]))
            await asyncio.sleep(0)
        return self._index.excess(most_bytes, most_writes)

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        self._check_open()
        self._index.check_history(after)
        with self._reading():
            return self._followers.add(after, sink, ended, self._backlog(after))

    async def barrier(self) -> int:
        self._check_open()
        return self._index.revision

    async def compact(self, revision: int) -> None:
        async with self._compacting:
            self._check_open()
            if revision > self._index.compacted:
                await self._writer.execute(_COMPACT, [(self._index.readable(revision),)])
                self._index.compacted = revision
            while chunk := self._index.garbage(_CHUNK):
                # One chunk per transaction, so that writers wait for one chunk at most.
                self._check_open()
                await self._writer.execute(_DELETE, [(item.revision,) for item in chunk])
                self._index.forget(len(chunk))

    async def check(self) -> None:
        """Do a real write to the file at the path. Raises ``StoreError``."""
        self._check_open()
        self._file.check_identity()
        await self._writer.execute(_TOUCH, [()])

    async def backup(self) -> Path:
        self._check_open()
        self._file.check_identity()
        return await self._backup.run()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._backup.close()
        await self._writer.close()
        self._followers.end(Unavailable("the store is closed"))
        if self._shelf is not None:
            self._shelf.close()
        self._file.close()

    @property
    def compacted(self) -> int:
        return self._index.compacted

    def counts(self) -> Mapping[str, int]:
        return self._index.counts()

    def log(self, until: int, prefixes: Collection[str] | None = None) -> Iterator[Logged]:
        counts = self._index.counts()
        wanted = counts.keys() if prefixes is None else prefixes
        few = sum(counts.get(each, 0) for each in wanted) * _SCAN_PAYS < sum(counts.values())
        with self._reading():
            if not few:
                yield from self._scan_log(until, wanted)
                return
            for revision in self._index.rows(until, wanted):
                key, value = self._file.reader.execute(_ROW, (revision,)).fetchone()
                yield key, value, revision, None

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        return self._index.names(prefix)

    def _scan_log(self, until: int, prefixes: Collection[str]) -> Iterator[Logged]:
        """Yield writes by a sequential scan on a separate connection, because it may take long."""
        last = "\0"
        with closing(self._file.another_reader()) as connection:
            for revision, key, value in connection.execute(_ALL, (until,)):
                if not key.startswith(last):
                    found = collection_of(key)
                    if found not in prefixes:
                        continue
                    last = found if found != key else "\0"
                yield key, value, revision, None

    def _events(self, after: int) -> Iterator[Event]:
        rows = self._file.rows(after, self._index.revision)
        return (Event(key, value, revision) for revision, key, value in rows)

    def _backlog(self, after: int) -> Iterator[Sequence[Event]]:
        events = self._events(after)
        while chunk := list(islice(events, _CHUNK)):
            yield chunk

    def _values(self, revisions: list[int]) -> dict[int, bytes]:
        if len(revisions) <= _FEW:
            read = self._file.reader.execute
            return {revision: read(_VALUE, (revision,)).fetchone()[0] for revision in revisions}
        wanted = set(revisions)
        rows = self._file.rows(min(wanted) - 1, max(wanted))
        return {row: value for row, _, value in rows if row in wanted and value is not None}

    def _sizes(self, revisions: list[int]) -> list[int]:
        read = self._file.reader.execute
        return [read(_SIZE, (revision,)).fetchone()[0] for revision in revisions]

    def _check_identity(self) -> None:
        """Check every few seconds that the file was not replaced: its writes would be lost."""
        now = monotonic()
        if now - self._identified > _IDENTITY_SECONDS:
            self._file.check_identity()
            self._identified = now

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise Unavailable(f"{self._file.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self._file.path}: {error}") from error

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")
