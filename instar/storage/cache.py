"""The watch cache: every read of the server comes from here, every byte of it from a ``Store``.

It follows a store through ``subscribe`` and keeps, per collection, the current entries in key
order and a window of recent changes. What an entry *is* the caller decides (``Ingest``): the
cache knows keys and revisions, no Kubernetes object.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from sortedcontainers import SortedList

from instar.records import dataclass
from instar.storage.keys import collection_of, in_layout
from instar.storage.store import (
    Compacted,
    Event,
    Local,
    Page,
    Record,
    Store,
    StoreError,
    Subscription,
    Unavailable,
)

log = logging.getLogger(__name__)

_REPLAYED_REVISIONS = 10_000
"""How far back a start on a remote store reaches, so that watches of elsewhere can go on here."""
_REPLAY_SECONDS = 30.0


class Sized(Protocol):
    """What the cache needs to know of an entry: its revision and about how much memory it holds."""

    @property
    def revision(self) -> int: ...

    @property
    def size(self) -> int: ...


E = TypeVar("E", bound=Sized)
Ingest = Callable[[Record, str], E]
"""(record, its key below the collection, which is kept once for all) → the entry."""


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """How much of the recent past is kept for watchers and consistent pages, per collection."""

    events: int = 100_000
    bytes: int = 64 << 20


class Change(NamedTuple, Generic[E]):
    """One committed write as a watcher sees it: ``new`` is None for a deletion."""

    revision: int
    suffix: str
    new: E | None
    old: E | None


Listener = Callable[["Change[E]"], None]


class Collection(Generic[E]):
    """The objects of one resource: entries by key suffix, sorted, with a window of changes."""

    def __init__(self, prefix: str, complete_since: int, limits: WindowLimits) -> None:
        self.prefix = prefix
        self.entries: dict[str, E] = {}
        self.keys: SortedList[str] = SortedList()
        self.window: deque[Change[E]] = deque()
        self.complete_since = complete_since
        """Changes above this revision are all in the window."""
        self.listeners: list[Listener[E]] = []
        self._limits = limits
        self._window_bytes = 0

    def load(self, entries: dict[str, E], revision: int) -> None:
        """Start over from a full read; what was in the window is no longer continuous."""
        self.entries = entries
        self.keys = SortedList(entries)
        self.window.clear()
        self._window_bytes = 0
        self.complete_since = revision

    def apply(self, change: Change[E]) -> None:
        suffix, new = change.suffix, change.new
        if new is None:
            if self.entries.pop(suffix, None) is not None:
                self.keys.remove(suffix)
        else:
            if suffix not in self.entries:
                self.keys.add(suffix)
            self.entries[suffix] = new
        self.window.append(change)
        self._window_bytes += change.old.size if change.old is not None else 64
        while len(self.window) > self._limits.events or self._window_bytes > self._limits.bytes:
            self._forget_oldest()
        for listener in tuple(self.listeners):
            listener(change)

    def forget_until(self, revision: int) -> None:
        """Drop changes at and below ``revision`` (compaction)."""
        while self.window and self.window[0].revision <= revision:
            self._forget_oldest()
        self.complete_since = max(self.complete_since, revision)

    def has_nothing_since(self, revision: int) -> bool:
        """Whether a new one that is complete since ``revision`` would tell the same."""
        return not self.entries and not self.window and self.complete_since <= revision

    def _forget_oldest(self) -> None:
        gone = self.window.popleft()
        self._window_bytes -= gone.old.size if gone.old is not None else 64
        self.complete_since = max(self.complete_since, gone.revision)

    def suffixes(self, below: str = "", start: str = "") -> Iterator[str]:
        """Key suffixes in order, those with the prefix ``below``, from ``start`` on."""
        if not below and not start:
            return iter(self.keys)
        low = max(below, start)
        high = below + "\U0010ffff" if below else None
        return iter(self.keys.irange(low, high))

    def changes_after(self, revision: int) -> list[Change[E]]:
        """Raises ``Compacted`` when the window does not reach back that far."""
        if revision < self.complete_since:
            raise Compacted(self.complete_since)
        recent: list[Change[E]] = []
        for change in reversed(self.window):
            if change.revision <= revision:
                break
            recent.append(change)
        recent.reverse()
        return recent

    def as_of(self, revision: int, below: str = "", start: str = "") -> Iterator[tuple[str, E]]:
        """Entries in key order as they were at ``revision``: now, with later changes undone.

        Read it without awaiting in between. Raises ``Compacted`` before yielding anything.
        """
        undone: dict[str, E | None] = {}
        for change in reversed(self.changes_after(revision)):
            undone[change.suffix] = change.old
        gone = sorted(
            suffix
            for suffix, old in undone.items()
            if old is not None and suffix.startswith(below) and suffix >= start
        )
        unchanged = (suffix for suffix in self.suffixes(below, start) if suffix not in undone)
        return self._entries_of(merge(unchanged, gone), undone)

    def _entries_of(
        self, suffixes: Iterable[str], undone: dict[str, E | None]
    ) -> Iterator[tuple[str, E]]:
        for suffix in suffixes:
            entry = undone.get(suffix) or self.entries[suffix]
            yield suffix, entry

    def select(self, below: str = "", start: str = "", limit: int = 0) -> tuple[list[E], int]:
        """Entries in key order, at most ``limit`` (0: all), and how many more there are."""
        low = max(below, start)
        first = self.keys.bisect_left(low) if low else 0
        last = self.keys.bisect_left(below + "\U0010ffff") if below else len(self.keys)
        stop = min(last, first + limit) if limit else last
        if stop <= first:
            return [], 0
        found = list(map(self.entries.__getitem__, self.keys.islice(first, stop)))
        return found, last - stop


class Cache(Generic[E]):
    """All collections of a store, kept current. Start it before the first read."""

    def __init__(self, store: Store, ingest: Ingest[E], limits: WindowLimits | None = None) -> None:
        self.store = store
        self.revision = 0
        self.failure: StoreError | None = None
        """Why the cache is not following right now; None when all is well."""
        self._ingest = ingest
        self._limits = limits or WindowLimits()
        self._collections: WeakValueDictionary[str, Collection[E]] = WeakValueDictionary()
        """All that somebody holds: who has one sees what comes into it, however long it is empty.
        One that nobody asks for any more goes, as soon as it has nothing to tell."""
        self._telling: dict[str, Collection[E]] = {}
        """Those with entries or with a past that another would not know of."""
        self._complete_since = 0
        """No change above this revision has escaped us, in any collection."""
        self._subscription: Subscription | None = None
        self._waiters: dict[asyncio.Future[None], int] = {}
        self._reload: asyncio.Task[None] | None = None
        self._reset_listeners: list[Callable[[], None]] = []

    async def start(self) -> None:
        if isinstance(self.store, Local):
            await self._replay(self.store)
            self._subscribe()
        else:
            await self._catch_up()

    async def _replay(self, store: Local) -> None:
        """Load the oldest state the store knows, then live through its history again, so that
        watchers and pages of before a restart can go on."""
        compacted, _ = store.history()
        if compacted:
            page = await self.store.range("", revision=compacted)
            self._load(page.records, compacted)
        _, events = store.history()
        for event in events:
            self._on_events((event,), event.revision)
        self._advance(await self.store.barrier())

    async def _catch_up(self) -> None:
        """Load a state of some time ago and follow from there: the same for a remote store."""
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
            return await self.store.range("", revision=revision)
        except Compacted as error:
            oldest = error.oldest
        try:
            return await self.store.range("", revision=oldest)
        except Compacted:
            return await self.store.range("")

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
        """Called after the cache had to load everything anew; watchers must be ended."""
        self._reset_listeners.append(listener)

    async def reached(self, revision: int, within: float = 3.0) -> bool:
        """Wait until the cache shows ``revision``; False when that took too long."""
        if self.revision >= revision:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[future] = revision
        try:
            await asyncio.wait_for(future, within)
        except TimeoutError:
            return False
        finally:
            del self._waiters[future]
        return True

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
            grouped.setdefault(prefix, {})[suffix] = self._ingest(record, suffix)
        known = self.collections()  # held here while they change places
        self._telling.clear()
        for prefix in {*grouped, *(collection.prefix for collection in known)}:
            collection = self.collection(prefix)
            collection.load(grouped.get(prefix, {}), revision)
            if collection.entries:
                self._telling[prefix] = collection
        # Also backwards, when the store was restored: following from where we had been would
        # miss whatever is written until then.
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
        self._advance(revision)

    def _advance(self, revision: int) -> None:
        self.revision = max(self.revision, revision)
        for future, wanted in self._waiters.items():
            if wanted <= self.revision and not future.done():
                future.set_result(None)

    def _on_ended(self, error: StoreError) -> None:
        log.warning("the store's event stream ended, loading again: %s", error)
        self.failure = error
        self._reload = asyncio.get_running_loop().create_task(self._load_again())

    async def _load_again(self) -> None:
        """Whoever followed the old stream is told before the first event of the new one."""
        delay = 0.05
        while True:
            try:
                page = await self.store.range("")
                self._load(page.records, page.revision)
                for listener in tuple(self._reset_listeners):
                    listener()
                self._subscribe()
                break
            except StoreError as error:
                self.failure = error
                await asyncio.sleep(delay)
                delay = min(delay * 2, 2.0)
        self.failure = None
