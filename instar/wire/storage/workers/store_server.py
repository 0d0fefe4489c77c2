"""Serves the first process's store to the workers, over a unix socket that only its owner can open.

Started by ``cli/serving/workers.py``; the client side is ``worker_store.py``. A SQLite file has one
writer, this process: workers receive every event in order, and their writes join this process's
transactions. Workers on a cluster receive state and events from here and write to the cluster
themselves (``worker_remote.py``). Values in shared memory are sent as locations, with announcements
when they move (``arena_reclaim.py``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from instar.base.supervision import SupervisedTask, Supervision, rest
from instar.wire.storage.store import (
    Event,
    Expecting,
    HotBackup,
    Local,
    Remembering,
    Store,
    StoreError,
    Subscription,
    Unavailable,
    Write,
)
from instar.wire.storage.workers.arena_reclaim import OwnerRecords, Reclaimer
from instar.wire.storage.workers.frames import (
    FrameReader,
    Head,
    encode_events,
    error_head,
    events_frame,
    frame,
    moves_head,
)
from instar.wire.storage.workers.shared_revision import SharedRevision

log = logging.getLogger(__name__)
SOCKET, REVISION, ARENA = "store.sock", "revision", "arena"
_MOST_BACKLOG = 256 << 20
"""Bytes a worker may be behind, in its socket or in memory not freed because of it. A worker
further behind is disconnected."""
_SETTLE_SECONDS = 0.5


class SharedMemoryStore(NamedTuple):
    """The values in shared memory, and the map of their locations."""

    loans: Reclaimer
    books: OwnerRecords


class StoreServer:
    """Serves ``store`` on a socket in ``folder``, which only its owner can access."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        lent: SharedMemoryStore | None = None,
        supervision: Supervision | None = None,
    ) -> None:
        self._store = store
        self._supervision = supervision or Supervision()
        self._folder = folder
        self._lent = lent
        self._revision = SharedRevision(folder / REVISION, writing=True)
        self._peers: set[_Peer] = set()
        self._following: Subscription | None = None
        self._server: asyncio.Server | None = None
        self._settling: SupervisedTask | None = None

    async def start(self) -> None:
        if isinstance(self._store, Local):  # a remote store reports its own revision
            # Publish the revision before a write is acknowledged, so that every process sees it.
            current = await self._store.barrier()
            self._following = self._store.subscribe(current, self._reached, _log_store_end)
            self._revision.set(await self._store.barrier())
        elif self._lent is not None:  # the upper bound of what its workers have seen
            self._lent.books.reached = self._revision.set
        loop = asyncio.get_running_loop()
        if self._lent is not None:
            # Workers inherit the file under the same descriptor number.
            (self._folder / ARENA).write_text(str(self._lent.loans.arena.file), encoding="utf-8")
            self._settling = self._supervision.keep("lending", partial(self._settle, self._lent))
        self._server = await loop.create_unix_server(
            lambda: _Peer(self._store, self._peers, self._lent).frames,
            str(self._folder / SOCKET),
        )

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._settling is not None:
            await self._settling.stop()
        for peer in tuple(self._peers):
            peer.close()
        if self._following is not None:
            self._following.close()
        elif self._lent is not None:
            self._lent.books.reached = _ignore_revision
        self._revision.close()

    def _reached(self, events: Sequence[Event], revision: int) -> None:
        self._revision.set(revision)

    async def _settle(self, lent: SharedMemoryStore) -> None:
        more, loans = False, lent.loans
        while True:
            await rest(0 if more else _SETTLE_SECONDS)
            if not more:
                loans.settle([peer.passed for peer in self._peers])
                if loans.arena.excess > _MOST_BACKLOG and self._peers:
                    log.warning("disconnecting a stalled worker: it blocks reuse of shared memory")
                    min(self._peers, key=lambda peer: (peer.listens, peer.passed)).close()
            more = self._leave(lent)

    def _leave(self, lent: SharedMemoryStore) -> bool:
        """Do one reclaim step and announce it first to all workers; return whether more remains."""
        if not all(peer.listens for peer in self._peers):
            return False
        loans, books = lent
        fences = loans.fences
        moves, more = loans.leave(books)
        for peer in self._peers:
            if moves:
                peer.frames.send(frame([0, "moved", moves_head(moves)]))
            if loans.fences > fences:
                peer.tell_fence()
        return more


def _ignore_revision(revision: int) -> None:
    pass


def _log_store_end(error: StoreError) -> None:
    log.error("the store shared with the workers ended: %s", error)


class _Peer:
    """The connection of one worker."""

    def __init__(self, store: Store, peers: set[_Peer], lent: SharedMemoryStore | None) -> None:
        self._store = store
        self._peers = peers
        self._lent = lent
        self.passed = 0
        """The last fence that the worker has passed."""
        self._subscriptions: dict[int, Subscription] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._most_backlog = _MOST_BACKLOG
        self.frames = FrameReader(self._received, self._lost)
        peers.add(self)

    @property
    def listens(self) -> bool:
        """Return whether the worker has loaded and receives changes and moves from now on."""
        return bool(self._subscriptions)

    def tell_fence(self) -> None:
        if self._lent is not None:
            self.frames.send(frame([0, "fence", self._lent.loans.fences]))

    def close(self) -> None:
        self.frames.close()

    def _lost(self, error: Exception | None) -> None:
        self._peers.discard(self)
        for subscription in self._subscriptions.values():
            subscription.close()
        # Its pending writes continue, because other writes may depend on them.

    def _received(self, head: Head, body: bytes) -> None:
        number, what, *rest = head
        if what == "subscribe":
            self._subscribe(number, *rest)
        elif what == "unsubscribe":
            subscription = self._subscriptions.pop(number, None)
            if subscription is not None:
                subscription.close()
        elif what == "expect" and isinstance(self._store, Expecting):
            self._store.expect(*rest)
        elif what == "passed":
            (self.passed,) = rest
        else:
            answering = self._answer(number, what, rest, body)
            task = asyncio.get_running_loop().create_task(answering)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int, what: str, rest: Sequence[Any], body: bytes) -> None:
        try:
            head, values = await self._done(what, rest, body)
            answer = frame([number, "ok", head], values)
        except Exception as error:  # the worker waits for an answer, so report any failure
            if not isinstance(error, StoreError):
                log.exception("a worker's %s failed", what)
            answer = frame([number, "error", error_head(error)])
        self.frames.send(answer)

    async def _done(
        self, what: str, rest: Sequence[Any], body: bytes
    ) -> tuple[Any, Sequence[bytes]]:
        if what == "commit":
            key, expected, deletes = rest
            return await self._store.commit(Write(key, None if deletes else body, expected)), ()
        if what == "get":
            record = await self._store.get(*rest)
            return encode_events([] if record is None else [record])
        if what == "state" and self._lent is not None:
            page = self._lent.books.state(*rest)
            told, values = encode_events(page.records)
            return [told, page.revision, page.more, self._lent.loans.fences], values
        if what == "range":
            prefix, start, limit, revision = rest
            page = await self._store.range(prefix, start=start, limit=limit, revision=revision)
            told, values = encode_events(page.records)
            return [told, page.revision, page.more], values
        if what == "past" and isinstance(self._store, Remembering):
            key, before, limit = rest
            past = await self._store.past(key, before=before, limit=limit)
            told, values = encode_events(past.events)
            return [told, past.more, past.compacted], values
        if what == "backup":
            if not isinstance(self._store, HotBackup):
                raise Unavailable("the first process keeps its objects in memory only")
            return str(await self._store.backup()), ()
        if what == "compact":
            await self._store.compact(*rest)
            return None, ()
        raise StoreError(f"{what} is not a request of a worker")

    def _subscribe(self, number: int, after: int) -> None:
        def take(events: Sequence[Event], revision: int) -> None:
            self.frames.send(events_frame(number, events, revision))
            if number in self._subscriptions and self.frames.backlog() > self._most_backlog:
                log.warning("disconnecting a slow worker: too many events wait for it")
                self.frames.close()

        def ended(error: StoreError) -> None:
            self._subscriptions.pop(number, None)
            self.frames.send(frame([0, "ended", number, error_head(error)]))

        try:
            source = self._store if self._lent is None else self._lent.books
            self._subscriptions[number] = source.subscribe(after, take, ended)
        except StoreError as error:
            ended(error)
        self.tell_fence()
        # The requested history was queued at once, before the worker could read any of it.
        self._most_backlog = _MOST_BACKLOG + self.frames.backlog()
