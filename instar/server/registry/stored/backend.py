"""The registry's hand on the store: commits objects, and shows them through the watch cache.

Store errors end here: what leaves is an ``CacheEntry``, ``Stale`` (the caller decides whether to
try
again) or an ``ApiError``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from instar.base.errors import ApiError, ServiceUnavailable, Timeout
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry, ingest
from instar.server.registry.stored.lazy_entry import LazyEntryFactory
from instar.server.registry.stored.page_cache import Pages
from instar.server.registry.stored.shared_entry import BorrowedEntryFactory, OwnedEntryFactory
from instar.server.registry.stored.storage_errors import as_api_error, guarded
from instar.server.registry.stored.worker_feed import CacheBooks
from instar.wire.storage.keys import collection_prefix, in_built_in_group
from instar.wire.storage.store import (
    Chaining,
    Checkable,
    Near,
    Record,
    Seal,
    Sealing,
    SharedStore,
    Stale,
    Store,
    StoreError,
    Unavailable,
    Write,
)
from instar.wire.storage.value_reader import Values
from instar.wire.storage.watchcache.cache import Cache
from instar.wire.storage.watchcache.collection import Collection, WindowLimits
from instar.wire.storage.workers.arena_reclaim import Borrowing, Elsewhere, Loans, Move

Objects = Collection[CacheEntry]

_PATIENCE = 10.0
"""Seconds a request waits for the cache; a store whose member hangs is left long before."""


class WriteDraft(NamedTuple):
    """What the writer knows of the bytes it commits, so that the cache need not parse them."""

    value: bytes
    entry: InMemoryEntry
    written_view: Callable[[CacheEntry], None] | None = None
    """Told the entry with its revision before anybody who follows the cache."""
    then: WriteDraft | None = None
    """What is committed with it, under the same key."""


class Backend:
    def __init__(
        self,
        store: Store,
        limits: WindowLimits | None = None,
        values: Values | None = None,
        loans: Loans | None = None,
    ) -> None:
        """With ``values`` entries leave their bytes there, with ``loans`` other processes may read
        them; else they hold them."""
        self.store = store
        self._lender = None if loans is None else OwnedEntryFactory(loans)
        self._distance = self._lender or (None if values is None else LazyEntryFactory(values))
        self._borrower: BorrowedEntryFactory | None = None
        if isinstance(store, Borrowing):
            self._borrower = BorrowedEntryFactory(store)
            store.moved = self._moved
        self.cache: Cache[CacheEntry] = Cache(store, self._ingest, limits)
        self.books = None if self._lender is None else CacheBooks(self.cache, self._lender)
        """What those are told who borrow what is here."""
        self.pages = Pages()
        self._drafts: dict[str, WriteDraft] = {}
        self._silence: StoreError | None = None
        self._seen = _seen_elsewhere(store)
        self._sealing = store if isinstance(store, Sealing) else None
        self._checkable = store if isinstance(store, Checkable) else None
        self._chaining = store if isinstance(store, Chaining) else None

    @property
    def trouble(self) -> str | None:
        """Why reads and writes cannot be served right now, in words for an operator."""
        trouble = self.cache.failure or self._silence
        if trouble is not None:
            return str(trouble)
        return "not loaded yet" if self.loading else None

    @property
    def loading(self) -> bool:
        return not self.cache.revision or bool(self.cache.pending)

    def lacks(self, group: str, plural: str) -> bool:
        """Whether the objects of a resource are still to be read, while others are there."""
        pending = self.cache.pending
        return bool(pending) and bool(plural) and collection_prefix(group, plural) in pending

    async def probe(self) -> None:
        """Ask the store for a sign of life (a write, if it can), which ``trouble`` then tells."""
        try:
            if self._checkable is not None:
                await self._checkable.check()
            else:
                await self.store.barrier()
            self._silence = None
        except StoreError as error:
            self._silence = error

    async def start(self) -> None:
        await self.cache.start()

    async def begin(self) -> None:
        """Read what is small, and all that says who may ask for what; the rest ``finish`` reads."""
        await self.cache.begin(in_built_in_group)

    async def finish(self) -> None:
        await self.cache.finish()

    async def stop(self) -> None:
        await self.cache.stop()
        await self.store.close()

    @property
    def revision(self) -> int:
        return self.cache.revision

    def collection(self, prefix: str) -> Objects:
        return self.cache.collection(prefix)

    async def put(
        self,
        objects: Objects,
        entry: InMemoryEntry,
        expected: int,
        written_view: Callable[[CacheEntry], None] | None = None,
    ) -> CacheEntry:
        """Commit ``entry`` (revision not yet known) and return it as the cache shows it."""
        assert entry.raw is not None
        key = objects.prefix + entry.suffix
        draft = WriteDraft(entry.raw + b"\n", entry, written_view)
        self._drafts[key] = draft
        try:
            revision = await self.store.commit(Write(key, draft.value, expected))
            if revision > self.cache.revision:
                await self._shown(revision)
        except Stale:
            raise
        except StoreError as error:
            raise self._told(error) from error
        finally:
            if self._drafts.get(key) is draft:
                del self._drafts[key]
        current = objects.entries.get(entry.suffix)
        if current is None or current.revision != revision or self._apart:
            entry.revision = revision
            current = entry
        if written_view is not None and current is not entry:
            written_view(current)
        return current

    @property
    def chains(self) -> bool:
        """Whether several states of an object can be committed at once."""
        return self._chaining is not None

    def under_way(self, objects: Objects) -> bool:
        """Whether somebody's write is about to appear here. Only where the store ``chains``."""
        return self._chaining is not None and self._chaining.under_way(objects.prefix)

    async def put_chain(
        self, objects: Objects, entries: Sequence[InMemoryEntry], expected: int
    ) -> CacheEntry:
        """Commit states of one object that follow each other, all or none; the first of them,
        which nobody finds in the cache any more. Only where the store ``chains``."""
        assert self._chaining is not None
        key = objects.prefix + entries[0].suffix
        values = [(entry.raw or b"") + b"\n" for entry in entries]
        draft: WriteDraft | None = None
        for value, entry in zip(reversed(values), reversed(entries), strict=True):
            draft = WriteDraft(value, entry, None, draft)
        assert draft is not None
        self._drafts[key] = draft
        try:
            write = Write(key, values[0], expected)
            revision = await self._done(self._chaining.commit_chain(write, values[1:]))
            await self._shown(revision + len(values) - 1)
        finally:
            if self._drafts.get(key) is draft:
                del self._drafts[key]
        entries[0].revision = revision
        return entries[0]

    async def remove(self, objects: Objects, suffix: str, expected: int) -> int:
        """Delete, and return the revision of the deletion."""
        revision = await self._done(
            self.store.commit(Write(objects.prefix + suffix, None, expected))
        )
        await self._shown(revision)
        return revision

    @property
    def seals(self) -> bool:
        """Whether values lie in the store under keys."""
        return self._sealing is not None

    def seal_of(self, objects: Objects) -> Seal | None:
        """What an object written now would lie under."""
        return None if self._sealing is None else self._sealing.seal_of(objects.prefix)

    def sealed_anew(self, objects: Objects, entry: CacheEntry) -> bool:
        """Whether writing the same bytes would put them under another key: then it is done."""
        return self._sealing is not None and entry.seal != self.seal_of(objects)

    async def consistent(self) -> None:
        """After this, the cache shows every write acknowledged before the call, by anyone."""
        try:
            revision = await self.store.barrier()
        except StoreError as error:
            raise as_api_error(error) from error
        if revision > self.cache.revision:
            await self._shown(revision)

    def behind(self) -> bool:
        """Whether the cache is known, for nothing, not to be ``consistent``: asked before every
        request, so that a write is judged by the CRD of now, too."""
        if self._seen is None:
            return False
        try:
            return self._seen() > self.cache.revision
        except StoreError as error:
            raise as_api_error(error) from error

    async def is_current(self, objects: Objects, entry: CacheEntry) -> bool:
        """Whether the entry is still the newest; what is answered from it may depend on that."""
        await self.consistent()
        current = objects.entries.get(entry.suffix)
        return current is not None and current.revision == entry.revision

    async def at_least(self, revision: int) -> None:
        """Wait for a revision a client asked for; 504 when it lies in the future."""
        if revision <= self.cache.revision:
            return
        # Another replica may have told it: asking the store makes our own watch catch up.
        await guarded(self.store.barrier)
        if await self.cache.reached(revision):
            return
        raise too_new(revision, self.cache.revision)

    async def _done(self, committing: Awaitable[int]) -> int:
        try:
            return await committing
        except Stale:
            raise
        except StoreError as error:
            raise self._told(error) from error

    def _told(self, error: StoreError) -> ApiError:
        """Of a write that failed."""
        if isinstance(error, Unavailable):
            self._silence = error  # until a probe finds that it can be written again
        return as_api_error(error)

    async def _shown(self, revision: int) -> None:
        behind = revision > self.cache.revision
        if behind and not await self.cache.reached(revision, within=_PATIENCE):
            raise ServiceUnavailable(
                f"the watch cache is behind the store (at {self.cache.revision}, "
                f"waiting for {revision}); the write, if there was one, is done",
                retry_after=1,
            )

    @property
    def _apart(self) -> bool:
        """Whether the cache's entries have no bytes, of which the writer's has."""
        return self._distance is not None or self._borrower is not None

    def _moved(self, move: Move) -> None:
        if self._borrower is not None:
            self._borrower.moved(self.cache.entry(move.key), move)

    def _borrow(
        self, borrower: BorrowedEntryFactory, value: Elsewhere, record: Record, suffix: str
    ) -> CacheEntry:
        entry = borrower.of_place(value, record.revision, suffix)
        draft = self._drafts.get(record.key)
        if draft is not None and draft.value == entry.stored() + b"\n":
            del self._drafts[record.key]
            draft.entry.revision, draft.entry.suffix = record.revision, suffix
            if draft.written_view is not None:
                draft.written_view(draft.entry)
            entry.learn(draft.entry)
        return entry

    def _ingest(self, record: Record, suffix: str) -> CacheEntry:
        value = record.value
        if self._borrower is not None and isinstance(value, Elsewhere):
            return self._borrow(self._borrower, value, record, suffix)
        draft = self._drafts.get(record.key)
        if draft is None or draft.value != record.value:
            if self._distance is not None:
                return self._distance.of_record(record, suffix)
            return ingest(record, suffix)
        # One draft is one write: the same bytes may come again.
        if draft.then is None:
            del self._drafts[record.key]
        else:
            self._drafts[record.key] = draft.then
        draft.entry.revision, draft.entry.suffix = record.revision, suffix
        draft.entry.seal = record.seal
        if draft.written_view is not None:
            draft.written_view(draft.entry)
        if self._distance is not None:
            return self._distance.of_held(draft.entry, record)
        return draft.entry


def too_new(revision: int, current: int) -> Timeout:
    return Timeout(
        f"Too large resource version: {revision}, current: {current}",
        details={
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
        },
        retry_after=1,
    )


def _seen_elsewhere(store: Store) -> Callable[[], int] | None:
    """Tells how far others are that a client may have been answered by."""
    if isinstance(store, Near):
        return store.current
    return store.seen if isinstance(store, SharedStore) else None
