"""Store of a worker process: forwards to the store of the first process over a unix socket.

Opened by ``wire/storage/open.py`` for ``peer:`` URLs; the server side is ``store_server.py``. Reads
are answered by the worker's cache, at the revision in shared memory; a write goes to the first
process and back. When the first process disconnects, the store is lost for good.
"""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

from instar.base.taskless_wait import Waiter, waiter
from instar.wire.storage.event_followers import Follower, Followers
from instar.wire.storage.memory import check_write
from instar.wire.storage.store import (
    Ended,
    Page,
    Past,
    Record,
    Sink,
    StoreError,
    StoreLost,
    Subscription,
    Unavailable,
    Write,
)
from instar.wire.storage.workers.arena import ArenaView
from instar.wire.storage.workers.arena_reclaim import Move, MoveListener
from instar.wire.storage.workers.frames import (
    FrameReader,
    Head,
    frame,
    read_error,
    read_events,
    read_records,
)
from instar.wire.storage.workers.shared_revision import SharedRevision
from instar.wire.storage.workers.store_server import ARENA, REVISION, SOCKET

_CHUNK = 1000
"""Records per frame, so that a frame holds even the largest objects."""
_PLACES = 5000
"""Records per frame when their values are in shared memory."""
_GONE = "the process that owns the store is gone"


class PeerStore:
    """Store over the socket. Open it with ``await PeerStore.connect(folder)``."""

    def __init__(self, folder: Path) -> None:
        self._revision = SharedRevision(folder / REVISION, writing=False)
        self._frames = FrameReader(self._received, self._lost)
        self._followers = Followers()
        self._following: dict[int, Follower] = {}
        self._numbers = count(1)
        self._asked: dict[int, Waiter[tuple[Any, bytes]]] = {}
        self._closed = False
        self._gone = asyncio.Event()

    @classmethod
    async def connect(cls, folder: Path) -> PeerStore:
        loop = asyncio.get_running_loop()
        shared = folder / ARENA
        try:
            lent = shared.exists()
            store = (
                BorrowedStore(folder, int(shared.read_text(encoding="utf-8")))
                if lent
                else PeerStore(folder)
            )
            await loop.create_unix_connection(lambda: store._frames, str(folder / SOCKET))
        except OSError as error:
            raise StoreError(
                f"{folder}: cannot connect to the store of the first process: {error}"
            ) from error
        return store

    async def get(self, key: str) -> Record | None:
        told, body = await self._ask(["get", key])
        return next(iter(read_records(told, body)), None)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        records: list[Record] = []
        while True:
            wanted = min(limit - len(records), _CHUNK) if limit else _CHUNK
            told, body = await self._ask(["range", prefix, start, wanted, revision])
            found, revision, more = told  # all chunks show the same revision
            records += read_records(found, body)
            if not more or len(records) == limit:
                return Page(records, revision, more)
            start = records[-1].key + "\0"

    async def commit(self, write: Write) -> int:
        check_write(write)
        head = ["commit", write.key, write.expected, write.value is None]
        revision, _ = await self._ask(head, write.value or b"")
        return int(revision)

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        self._check_open()
        number = next(self._numbers)
        follower = self._followers.add(after, sink, ended, ())
        self._following[number] = follower
        self._frames.send(frame([number, "subscribe", after]))
        return _PeerSubscription(self, number, follower)

    async def barrier(self) -> int:
        return self.current()

    def current(self) -> int:
        self._check_open()
        return self._revision.get()

    async def past(self, key: str, *, before: int = 0, limit: int = 0) -> Past:
        (told, *rest), body = await self._ask(["past", key, before, limit])
        return Past(read_events(told, body), *rest)

    async def compact(self, revision: int) -> None:
        await self._ask(["compact", revision])

    async def backup(self) -> Path:
        """Return the copy that the first process wrote; the caller removes it."""
        path, _ = await self._ask(["backup"])
        return Path(path)

    async def lost(self) -> None:
        """Wait until the owner has disconnected, then raise; the connection is not restored."""
        await self._gone.wait()
        raise StoreLost(_GONE)

    @property
    def reached(self) -> int:
        """Return the highest revision that any follower has received."""
        return max((each.reached for each in self._following.values()), default=0)

    def expect(self, revision: int) -> None:
        self._frames.send(frame([0, "expect", revision]))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._followers.end(Unavailable("the store is closed"))
        self._frames.close()
        self._revision.close()

    def forget(self, number: int) -> None:
        if self._following.pop(number, None) is not None:
            self._frames.send(frame([number, "unsubscribe"]))

    async def _ask(self, head: Head, value: bytes = b"") -> tuple[Any, bytes]:
        self._check_open()
        number = next(self._numbers)
        answer: Waiter[tuple[Any, bytes]] = waiter()
        self._asked[number] = answer
        self._frames.send(frame([number, *head], (value,)))
        try:
            return await answer
        finally:
            self._asked.pop(number, None)

    def _received(self, head: Head, body: bytes) -> None:
        number, what, *rest = head
        if what == "events":
            follower = self._following.get(rest[0])
            if follower is not None:
                follower.take(read_events(rest[2], body), rest[1])
            return
        if what == "ended":
            follower = self._following.pop(rest[0], None)
            if follower is not None:
                follower.end(read_error(rest[1]))
            return
        if what in ("moved", "fence"):
            self._on_message(what, rest)
            return
        future = self._asked.get(number)
        if future is None or future.done():
            return
        if what == "ok":
            future.set_result((rest[0], body))
        else:
            future.set_exception(read_error(rest[0]))

    def _on_message(self, what: str, rest: list[Any]) -> None:
        """Handle a message about shared memory; this store has none."""

    def _lost(self, error: Exception | None) -> None:
        self._gone.set()
        for future in self._asked.values():
            if not future.done():
                future.set_exception(StoreLost(_GONE))
        self._followers.end(StoreLost(_GONE))

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")
        if self._gone.is_set():
            raise StoreLost(_GONE)


class BorrowedStore(PeerStore):
    """``ArenaReadingStore``: its values are in memory shared with the owner."""

    def __init__(self, folder: Path, file: int) -> None:
        super().__init__(folder)
        self._file = file
        self.arena = ArenaView(file)
        self.moved: MoveListener = lambda move: None

    async def state(self, revision: int = 0) -> Page:
        # drop ended subscriptions: their messages would still be applied
        for number in [*self._following]:
            if self._following[number].closed:
                self.forget(number)
        # Earlier locations stay valid until we subscribe again, as nothing is freed before. After
        # that a holder of one gets ``ValueGone``, because this view's fence does not advance.
        self.arena = ArenaView(self._file)
        start, records = "", list[Record]()
        while True:
            told, body = await self._ask(["state", start, _PLACES, revision])
            found, revision, more, fence = told
            self.arena.fence = max(self.arena.fence, fence)
            records += read_records(found, body)
            if not more:
                return Page(records, revision, more)
            start = records[-1].key + "\0"

    def _on_message(self, what: str, rest: list[Any]) -> None:
        if not any(not follower.closed for follower in self._following.values()):
            return
        if what == "moved":
            for key, revision, place in rest[0]:
                self.moved(Move(key, revision, place))
            return
        (self.arena.fence,) = rest
        self._frames.send(frame([0, "passed", *rest]))


async def borrow_store(folder: Path) -> BorrowedStore | None:
    """Connect to the store with shared memory in ``folder``; None if it has none."""
    if not (folder / ARENA).exists():
        return None
    store = await PeerStore.connect(folder)
    assert isinstance(store, BorrowedStore)
    return store


class _PeerSubscription:
    def __init__(self, store: PeerStore, number: int, follower: Follower) -> None:
        self._store, self._number, self._follower = store, number, follower

    def close(self) -> None:
        self._follower.close()
        self._store.forget(self._number)
