"""Lends a local store to other processes of this machine, over a socket only its owner can open.

The store stays where it is: one process writes the file. The others get every event in order, and
their writes become part of the same transactions as its own. Values that lie in shared memory do
not travel: the others are told where, and tell how far they are, so that it is known when such a
place is free again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from instar.storage.lending import Loans
from instar.storage.peer_revision import SharedRevision
from instar.storage.peer_wire import (
    Frames,
    Head,
    PlaceOf,
    error_head,
    events_frame,
    frame,
    nowhere,
    told_events,
)
from instar.storage.store import Event, Remembering, Store, StoreError, Subscription, Write

log = logging.getLogger(__name__)
SOCKET, REVISION, ARENA = "store.sock", "revision", "arena"
_MOST_BACKLOG = 256 << 20
"""Bytes a worker may be behind, in its socket or in what is not freed because of it; one that does
not read any more is let go."""
_SETTLE_SECONDS = 0.5


class StoreServer:
    """Serves ``store`` in ``folder``, which must be its owner's alone."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        loans: Loans | None = None,
        place_of: PlaceOf = nowhere,
    ) -> None:
        self._store = store
        self._folder = folder
        self._loans = loans
        self._place_of = place_of
        self._revision = SharedRevision(folder / REVISION, writing=True)
        self._peers: set[_Peer] = set()
        self._following: Subscription | None = None
        self._server: asyncio.Server | None = None
        self._settling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        # Before anybody is told that a write is done, everybody can see that it is.
        current = await self._store.barrier()
        self._following = self._store.subscribe(current, self._reached, _ended)
        self._revision.set(await self._store.barrier())
        loop = asyncio.get_running_loop()
        if self._loans is not None:
            files = self._loans.arena.files  # a worker has them open under the same numbers
            (self._folder / ARENA).write_bytes(orjson.dumps(list(files)))
            self._settling = loop.create_task(self._settle(self._loans))
        self._server = await loop.create_unix_server(
            lambda: _Peer(self._store, self._peers, self._place_of).frames,
            str(self._folder / SOCKET),
        )

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
        for peer in tuple(self._peers):
            peer.close()
        if self._following is not None:
            self._following.close()
        self._revision.close()

    def _reached(self, events: Sequence[Event], revision: int) -> None:
        self._revision.set(revision)

    async def _settle(self, loans: Loans) -> None:
        while True:
            await asyncio.sleep(_SETTLE_SECONDS)
            loans.settle(self._revision.get(), [peer.seen for peer in self._peers])
            if loans.unsettled > _MOST_BACKLOG:
                slowest = min(self._peers, key=lambda peer: peer.seen)
                log.warning("a worker does not go on and is let go")
                slowest.close()
            await _tidied(loans)


async def _tidied(loans: Loans) -> None:
    more = True
    while more:
        more = loans.arena.tidy()
        await asyncio.sleep(0)


def _ended(error: StoreError) -> None:
    log.error("the store lent to workers ended: %s", error)


class _Peer:
    """One worker's connection."""

    def __init__(self, store: Store, peers: set[_Peer], place_of: PlaceOf) -> None:
        self._store = store
        self._peers = peers
        self._place_of = place_of
        self._subscriptions: dict[int, Subscription] = {}
        self._seen: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._most_backlog = _MOST_BACKLOG
        self.frames = Frames(self._received, self._lost)
        peers.add(self)

    @property
    def seen(self) -> int:
        """The revision up to which it needs nothing that was written over by then."""
        return min(self._seen.values(), default=0)

    def close(self) -> None:
        self.frames.close()

    def _lost(self, error: Exception | None) -> None:
        self._peers.discard(self)
        for subscription in self._subscriptions.values():
            subscription.close()
        # What it has asked to write goes on: others may already build upon it.

    def _received(self, head: Head, body: bytes) -> None:
        number, what, *rest = head
        if what == "subscribe":
            self._subscribe(number, *rest)
        elif what == "unsubscribe":
            subscription = self._subscriptions.pop(number, None)
            self._seen.pop(number, None)
            if subscription is not None:
                subscription.close()
        elif what == "seen":
            if number in self._seen:
                (self._seen[number],) = rest
        else:
            answering = self._answer(number, what, rest, body)
            task = asyncio.get_running_loop().create_task(answering)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int, what: str, rest: Sequence[Any], body: bytes) -> None:
        try:
            head, values = await self._done(what, rest, body)
            answer = frame([number, "ok", head], values)
        except Exception as error:  # somebody waits for an answer, whatever went wrong
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
            return told_events([] if record is None else [record])
        if what in ("range", "state"):
            prefix, start, limit, revision = rest
            page = await self._store.range(prefix, start=start, limit=limit, revision=revision)
            place_of = self._place_of if what == "state" else nowhere
            told, values = told_events(page.records, place_of)
            return [told, page.revision, page.more], values
        if what == "past" and isinstance(self._store, Remembering):
            key, before, limit = rest
            past = await self._store.past(key, before=before, limit=limit)
            told, values = told_events(past.events)
            return [told, past.more, past.compacted], values
        if what == "compact":
            await self._store.compact(*rest)
            return None, ()
        raise StoreError(f"{what} is not known")

    def _subscribe(self, number: int, after: int) -> None:
        def take(events: Sequence[Event], revision: int) -> None:
            self.frames.send(events_frame(number, events, revision, self._place_of))
            if number in self._subscriptions and self.frames.backlog() > self._most_backlog:
                log.warning("a worker does not keep up and is let go")
                self.frames.close()

        def ended(error: StoreError) -> None:
            self.frames.send(frame([0, "ended", number, error_head(error)]))

        self._seen[number] = after
        try:
            self._subscriptions[number] = self._store.subscribe(after, take, ended)
        except StoreError as error:
            ended(error)
        # What it asked for of the past came all at once, before it could read any of it.
        self._most_backlog = _MOST_BACKLOG + self.frames.backlog()
