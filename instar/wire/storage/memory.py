"""In-memory store (``memory:``): the reference implementation of the ``Store`` contract.

Opened by ``open.py`` and by the embedded server (``server/lifecycle/embedded.py``). The store's
content is lost when the process ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from instar.wire.storage.event_followers import Followers
from instar.wire.storage.revision_index import RevisionIndex
from instar.wire.storage.store import (
    Ended,
    Event,
    Logged,
    Page,
    Past,
    Record,
    Sink,
    Stale,
    Subscription,
    Unavailable,
    Write,
)


class MemoryStore:
    """Store in the memory of this process (``memory:``)."""

    def __init__(self) -> None:
        self._index = RevisionIndex()
        self._log: dict[int, Event] = {}
        self._followers = Followers()
        self._least = 0
        self._closed = False

    async def get(self, key: str) -> Record | None:
        self._check_open()
        revision = self._index.head(key)
        return self._record(revision) if revision else None

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        self._check_open()
        at = self._index.readable(revision)
        found, more = self._index.select(prefix, start, limit, at)
        return Page([self._record(revision) for _, revision in found], at, more)

    async def commit(self, write: Write) -> int:
        return await self.commit_chain(write, ())

    async def commit_chain(self, write: Write, later: Sequence[bytes]) -> int:
        self._check_open()
        check_write(write)
        actual = self._index.head(write.key)
        if actual != write.expected:
            raise Stale(write.key, write.expected, actual)
        first = max(self._index.revision, self._least) + 1
        events = [Event(write.key, write.value, first)]
        for number, value in enumerate(later, first + 1):
            events.append(Event(write.key, value, number))
        for event in events:
            self._log[event.revision] = event
            self._index.apply(write.key, event.revision, event.value is None)
        self._followers.publish(events, self._index.revision)
        return first

    def under_way(self, prefix: str) -> bool:
        return False

    async def raise_revision(self, least: int) -> None:
        self._check_open()
        self._least = max(self._least, least)

    async def past(self, key: str, *, before: int = 0, limit: int = 0) -> Past:
        self._check_open()
        found, more = self._index.past(key, before, limit)
        return Past([self._log[abs(revision)] for revision in found], more, self._index.compacted)

    async def excess(self, most_bytes: int, most_writes: int) -> int:
        values = (self._log[revision].value for revision in self._index.unweighed())
        self._index.weigh(len(value or b"") for value in values)
        return self._index.excess(most_bytes, most_writes)

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        self._check_open()
        self._index.check_history(after)
        backlog = [list(self._events(after))] if after < self._index.revision else []
        return self._followers.add(after, sink, ended, filter(None, backlog))

    async def barrier(self) -> int:
        self._check_open()
        return self._index.revision

    async def compact(self, revision: int) -> None:
        self._check_open()
        if revision <= self._index.compacted:
            return
        self._index.compacted = self._index.readable(revision)
        while chunk := self._index.garbage(1000):
            for item in chunk:
                del self._log[item.revision]
            self._index.forget(len(chunk))

    async def close(self) -> None:
        self._closed = True
        self._followers.end(Unavailable("the store is closed"))

    @property
    def compacted(self) -> int:
        return self._index.compacted

    def counts(self) -> Mapping[str, int]:
        return self._index.counts()

    def log(self, until: int, prefixes: Collection[str] | None = None) -> Iterator[Logged]:
        wanted = self._index.counts() if prefixes is None else prefixes
        return map(self._log.__getitem__, self._index.rows(until, wanted))

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        return self._index.names(prefix)

    def _events(self, after: int) -> Iterator[Event]:
        return (event for revision, event in self._log.items() if revision > after)

    def _record(self, revision: int) -> Record:
        key, value, *_ = self._log[revision]
        assert value is not None
        return Record(key, value, revision)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")


def check_write(write: Write) -> None:
    if write.value is None and write.expected == 0:
        raise ValueError(f"{write.key}: a deletion needs the revision of the key")
