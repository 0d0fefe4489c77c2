"""Watch cache: the copy of the store in memory that answers every read of the server.

Created by ``server/registry/stored/backend.py``. It follows a store through ``subscribe`` and
keeps, per collection, the current entries in key order and a window of recent changes. The caller's
``Ingest`` turns a record into an entry; the cache itself works on keys and revisions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Generic
from weakref import WeakValueDictionary

from instar.base.supervision import is_being_cancelled, report_failure
from instar.wire.storage.keys import collection_of, in_layout
from instar.wire.storage.store import (
    Compacted,
    Event,
    Local,
    Page,
    Record,
    Sink,
    Store,
    StoreError,
    Subscription,
    Unavailable,
)
from instar.wire.storage.watchcache.collection import Change, Collection, E, Ingest, WindowLimits
from instar.wire.storage.watchcache.replay import replay
from instar.wire.storage.watchcache.revision_wait import RevisionWaiters
from instar.wire.storage.workers.arena_reclaim import ArenaReadingStore

log = logging.getLogger(__name__)

_REPLAYED_REVISIONS = 10_000
"""How many revisions before the current one a start on a remote store loads, so that watches of
other replicas can continue here."""
_REPLAY_SECONDS = 30.0
_LARGE = 20_000
"""Collections with more writes than this are loaded in the background; fewer load in a fraction of
a second."""


class Cache(Generic[E]):
    """All collections of a store, kept current. Start it before the first read."""

    def __init__(
        self,
        store: Store,
        ingest: Ingest[E],
        limits: WindowLimits | None = None,
        ingest_loaded: Ingest[E] | None = None,
    ) -> None:
        """``ingest_loaded`` makes entries of records that are read and not followed, if that
        differs."""
        self.store = store
        self.revision = 0
        self.failure: StoreError | None = None
        """Why the cache is not following the store now; None when it is."""
        self._ingest = ingest
        self._ingest_loaded = ingest_loaded or ingest
        self._limits = limits or WindowLimits()
        self._collections: WeakValueDictionary[str, Collection[E]] = WeakValueDictionary()
        """Every collection that is referenced anywhere. An unreferenced collection is dropped once
        it has neither entries nor a window."""
        self._telling: dict[str, Collection[E]] = {}
        """Collections with entries or with a window that a new one would lack."""
        self._complete_since = 0
        """No change above this revision is missing, in any collection."""
        self._subscription: Subscription | None = None
        self._waiting = RevisionWaiters()
        self._reload: asyncio.Task[None] | None = None
        self._reset_listeners: list[Callable[[], None]] = []
        self._event_listeners: list[Sink] = []
        self._began = 0
        self.pending: set[str] = set()
        """Prefixes of collections that are not loaded yet."""
        self._pending_waiters: set[asyncio.Future[None]] = set()

    async def start(self) -> None:
        await self.begin(lambda prefix: True)
        await self.finish()

    async def begin(self, needed: Callable[[str], bool]) -> None:
        """Load the ``needed`` and the small collections. Until ``finish``, writes are not allowed
        and ``pending`` collections cannot be read."""
        if not isinstance(self.store, Local):
            await self._catch_up()
            return
        counts = self.store.counts()
        here = {prefix: count for prefix, count in counts.items() if in_layout(prefix)}
        self.pending = {
            prefix for prefix, count in here.items() if count > _LARGE and not needed(prefix)
        }
        self._complete_since = self.store.compacted
        self._began = await self.store.barrier()
        await self._replay(self.store, here.keys() - self.pending)
        self._advance(self._began)

    async def finish(self) -> None:
        if not isinstance(self.store, Local):
            return
        await self._replay(self.store, self.pending)
        self._subscribe()
        self.pending = set()
        for waiter in self._pending_waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def whole(self) -> None:
        """Wait until no collection is pending."""
        if self.pending:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._pending_waiters.add(waiter)
            try:
                await waiter
            finally:
                self._pending_waiters.discard(waiter)

    async def _replay(self, store: Local, prefixes: Iterable[str]) -> None:
        filled = [self.collection(prefix) for prefix in prefixes]
        self._telling.update((each.prefix, each) for each in filled)
        await replay(store, filled, self._ingest_loaded, self._began, self._limits.events)

    async def _catch_up(self) -> None:
        """Load an earlier state of a remote store and follow from there, to fill the windows."""
        await self.stop()
        page = await self._past_state()
        self._load(page.records, page.revision)
        self._subscribe()
        current = await self.store.barrier()
        if not await self.reached(current, within=_REPLAY_SECONDS):
            raise Unavailable(f"the store's events stopped at revision {self.revision}")

    async def _past_state(self) -> Page:
        revision = max(1, await self.store.barrier() - _REPLAYED_REVISIONS)
        try:
            return await self._state(revision)
        except Compacted as error:
            oldest = error.oldest
        try:
            return await self._state(oldest)
        except Compacted:
            return await self._state()

    async def _state(self, revision: int = 0) -> Page:
        if isinstance(self.store, ArenaReadingStore):
            return await self.store.state(revision)
        return await self.store.range("", revision=revision)

    def _subscribe(self) -> None:
        self._subscription = self.store.subscribe(self.revision, self._on_events, self._on_ended)

    async def stop(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
        if self._reload is not None:
            self._reload.cancel()
            await asyncio.gather(self._reload, return_exceptions=True)

    def collection(self, prefix: str) -> Collection[E]:
        found = self._collections.get(prefix)
        if found is None:
            found = Collection(prefix, self._complete_since, self._limits)
            self._collections[prefix] = found
        return found

    def collections(self) -> list[Collection[E]]:
        return [*self._collections.values()]

    def on_reset(self, listener: Callable[[], None]) -> None:
        """Register a listener for full reloads, after which watches must be ended."""
        self._reset_listeners.append(listener)

    def on_events(self, listener: Sink) -> None:
        """Register a listener that gets all events when they arrive here."""
        self._event_listeners.append(listener)

    def entry(self, key: str) -> E | None:
        collection = self.collection(collection_of(key))
        return collection.entries.get(key[len(collection.prefix) :])

    async def reached(self, revision: int, within: float = 3.0) -> bool:
        """Wait until the cache has reached ``revision``; False on timeout."""
        return self.revision >= revision or await self._waiting.wait(revision, within)

    def compacted(self, revision: int) -> None:
        self._complete_since = max(self._complete_since, revision)
        for collection in self.collections():
            collection.forget_until(revision)
            if collection.has_nothing_since(self._complete_since):
                self._telling.pop(collection.prefix, None)

    def _load(self, records: Sequence[Record], revision: int) -> None:
        grouped: dict[str, dict[str, E]] = {}
        self._complete_since = revision
        for record in records:
            if not in_layout(record.key):
                continue
            prefix = collection_of(record.key)
            suffix = record.key[len(prefix) :]
            grouped.setdefault(prefix, {})[suffix] = self._ingest_loaded(record, suffix)
        known = self.collections()  # keep references while entries are replaced
        self._telling.clear()
        for prefix in {*grouped, *(collection.prefix for collection in known)}:
            collection = self.collection(prefix)
            collection.load(grouped.get(prefix, {}), revision)
            if collection.entries:
                self._telling[prefix] = collection
        # The revision may go backwards, when the store was restored: following from the old one
        # would miss writes until it is reached again.
        self.revision = revision
        self._advance(revision)

    def _on_events(self, events: Sequence[Event], revision: int) -> None:
        for event in events:
            if not in_layout(event.key):
                continue
            prefix = collection_of(event.key)
            collection = self._telling.get(prefix)
            if collection is None:
                collection = self._telling[prefix] = self.collection(prefix)
            suffix = event.key[len(prefix) :]
            new = None
            if event.value is not None:
                record = Record(event.key, event.value, event.revision, event.seal)
                new = self._ingest(record, suffix)
            self.revision = event.revision
            collection.apply(Change(event.revision, suffix, new, collection.entries.get(suffix)))
        # before waiters of this revision answer their clients
        for listener in self._event_listeners:
            listener(events, revision)
        self._advance(revision)

    def _advance(self, revision: int) -> None:
        self.revision = max(self.revision, revision)
        self._waiting.advance(self.revision)

    def _on_ended(self, error: StoreError) -> None:
        log.warning("the store's event stream ended, loading again: %s", error)
        self.failure = error
        self._reload = asyncio.get_running_loop().create_task(self._load_again())

    async def _load_again(self) -> None:
        """Reload everything and notify reset listeners before the first event of the new stream. It
        is retried until it succeeds; ``/readyz`` shows the failure meanwhile."""
        delay = 0.05
        while True:
            try:
                page = await self._state()
                self._load(page.records, page.revision)
                for listener in tuple(self._reset_listeners):
                    self._tell_reset(listener)
                self._subscribe()
                break
            except (Exception, asyncio.CancelledError) as error:
                if is_being_cancelled(error):
                    raise
                if not isinstance(error, StoreError):
                    report_failure("watch-cache", error)
                self.failure = StoreError(str(error))
                await asyncio.sleep(delay)
                delay = min(delay * 2, 2.0)
        self.failure = None

    def _tell_reset(self, listener: Callable[[], None]) -> None:
        try:
            listener()
        except Exception as error:
            report_failure("watch-cache", error, "a reset")
