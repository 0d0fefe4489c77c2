"""The registry's storage access: commits objects to the store and reads them from the watch cache.

Every verb and controller reaches the store through ``Backend``. ``Backend`` turns store errors into
API errors: a caller sees a ``CacheEntry``, an ``ApiError``, or ``Stale`` where it must decide
whether to try again. The stores themselves are in ``wire/storage``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import NamedTuple

from instar.base.errors import ApiError, ServiceUnavailable, Timeout
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry, ingest
from instar.server.registry.stored.lazy_entry import LazyEntryFactory
from instar.server.registry.stored.packing.packer import Packer
from instar.server.registry.stored.page_cache import PageCache
from instar.server.registry.stored.shared_entry import BorrowedEntryFactory, OwnedEntryFactory
from instar.server.registry.stored.storage_errors import as_api_error, with_api_errors
from instar.server.registry.stored.worker_feed import WorkerFeed
from instar.wire.storage.keys import collection_prefix, in_built_in_group
from instar.wire.storage.store import (
    Chaining,
    Checkable,
    Record,
    RevisionTracker,
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
from instar.wire.storage.workers.arena_reclaim import (
    ArenaReadingStore,
    ArenaReference,
    Move,
    Reclaimer,
)

Objects = Collection[CacheEntry]

_REFUSED_SECONDS = 10.0
_PATIENCE = 10.0
"""Seconds that a request waits for the cache. A store member that hangs is abandoned much
sooner."""


class WriteDraft(NamedTuple):
    """What the writer knows about the bytes it commits, so that the cache need not parse them."""

    value: bytes
    entry: InMemoryEntry
    written_view: Callable[[CacheEntry], None] | None = None
    """Called with the entry once it has its revision, before the cache's listeners."""
    then: WriteDraft | None = None
    """The next state of a chained write, under the same key."""


class Backend:
    """A store with its watch cache."""

    def __init__(
        self,
        store: Store,
        limits: WindowLimits | None = None,
        values: Values | None = None,
        loans: Reclaimer | None = None,
        packer: Packer | None = None,
    ) -> None:
        """Entries hold their bytes in memory, where ``packer`` packs them, unless ``values`` (they
        stay on disk) or ``loans`` (they are in an arena that worker processes read) is given."""
        self.store = store
        self._owned_factory = None if loans is None else OwnedEntryFactory(loans)
        self._entry_factory = self._owned_factory or (
            None if values is None else LazyEntryFactory(values)
        )
        self._borrowed_factory: BorrowedEntryFactory | None = None
        if isinstance(store, ArenaReadingStore):
            self._borrowed_factory = BorrowedEntryFactory(store)
            store.moved = self._moved
        self.packer = None if self._has_bytes_elsewhere else packer
        self.cache: Cache[CacheEntry] = Cache(store, self._ingest, limits, self._ingest_loaded)
        self.worker_feed = (
            None if self._owned_factory is None else WorkerFeed(self.cache, self._owned_factory)
        )
        """Serves this cache's content to worker processes."""
        self.pages = PageCache()
        self._drafts: dict[str, WriteDraft] = {}
        self._write_failure: StoreError | None = None
        self._refused_until = 0.0
        """A full disk accepts a small write now and then: until this time after a failed write, a
        successful probe does not clear the failure."""
        self._seen = _seen_elsewhere(store)
        self._sealing = store if isinstance(store, Sealing) else None
        self._checkable = store if isinstance(store, Checkable) else None
        self._chaining = store if isinstance(store, Chaining) else None

    @property
    def trouble(self) -> str | None:
        """Return why reads and writes cannot be served now, for an operator; None if they can."""
        trouble = self.cache.failure or self._write_failure
        if trouble is not None:
            return str(trouble)
        return "not loaded yet" if self.loading else None

    @property
    def loading(self) -> bool:
        return not self.cache.revision or bool(self.cache.pending)

    def lacks(self, group: str, plural: str) -> bool:
        """Return whether the objects of a resource are not loaded yet while others are."""
        pending = self.cache.pending
        return bool(pending) and bool(plural) and collection_prefix(group, plural) in pending

    async def probe(self) -> None:
        """Check that the store answers (with a write, if it supports that); sets ``trouble``."""
        try:
            if self._checkable is not None:
                await self._checkable.check()
            else:
                await self.store.barrier()
            if monotonic() >= self._refused_until:
                self._write_failure = None
        except StoreError as error:
            self._write_failure = error

    async def start(self) -> None:
        await self.cache.start()

    async def begin(self) -> None:
        """Load the small collections, among them everything that authorization needs; ``finish``
        loads the rest."""
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
        """Commit ``entry`` and return it as the cache shows it, with its revision."""
        assert entry.raw is not None
        key = objects.prefix + entry.suffix
        draft = WriteDraft(entry.raw + b"\n", entry, written_view)
        self._drafts[key] = draft
        try:
            revision = await self.store.commit(Write(key, draft.value, expected))
            if revision > self.cache.revision:
                await self._wait_for(revision)
        except Stale:
            raise
        except StoreError as error:
            raise self._write_error(error) from error
        finally:
            if self._drafts.get(key) is draft:
                del self._drafts[key]
        current = objects.entries.get(entry.suffix)
        if current is None or current.revision != revision or self._has_bytes_elsewhere:
            entry.revision = revision
            current = entry
        if written_view is not None and current is not entry:
            written_view(current)
        return current

    @property
    def chains(self) -> bool:
        """Whether several states of an object can be committed in one transaction."""
        return self._chaining is not None

    def under_way(self, objects: Objects) -> bool:
        """Return whether a write to the collection is being committed. Only where the store
        ``chains``."""
        return self._chaining is not None and self._chaining.under_way(objects.prefix)

    async def put_chain(
        self, objects: Objects, entries: Sequence[InMemoryEntry], expected: int
    ) -> CacheEntry:
        """Commit successive states of one object, all or none, and return the first, which the
        cache no longer shows. Only where the store ``chains``."""
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
            revision = await self._committed(self._chaining.commit_chain(write, values[1:]))
            await self._wait_for(revision + len(values) - 1)
        finally:
            if self._drafts.get(key) is draft:
                del self._drafts[key]
        entries[0].revision = revision
        return entries[0]

    async def remove(self, objects: Objects, suffix: str, expected: int) -> int:
        """Delete an object and return the revision of the deletion."""
        revision = await self._committed(
            self.store.commit(Write(objects.prefix + suffix, None, expected))
        )
        await self._wait_for(revision)
        return revision

    @property
    def seals(self) -> bool:
        """Whether the store encrypts values."""
        return self._sealing is not None

    def seal_of(self, objects: Objects) -> Seal | None:
        """Return the encryption key that an object written now would get; None without
        encryption."""
        return None if self._sealing is None else self._sealing.seal_of(objects.prefix)

    def needs_resealing(self, objects: Objects, entry: CacheEntry) -> bool:
        """Return whether writing the same bytes again would encrypt them with another key."""
        return self._sealing is not None and entry.seal != self.seal_of(objects)

    async def consistent(self) -> None:
        """Wait until the cache shows every write that any process acknowledged before the call."""
        try:
            revision = await self.store.barrier()
        except StoreError as error:
            raise as_api_error(error) from error
        if revision > self.cache.revision:
            await self._wait_for(revision)

    def behind(self) -> bool:
        """Return whether the cache is known to miss a write. Costs no request to the store: it is
        checked before every request, so that a write is validated by the latest CRD."""
        if self._seen is None:
            return False
        try:
            return self._seen() > self.cache.revision
        except StoreError as error:
            raise as_api_error(error) from error

    async def is_current(self, objects: Objects, entry: CacheEntry) -> bool:
        """Return whether the entry is still the latest one, after waiting for a consistent
        cache."""
        await self.consistent()
        current = objects.entries.get(entry.suffix)
        return current is not None and current.revision == entry.revision

    async def wait_for_revision(self, revision: int) -> None:
        """Wait for a revision that a client named. Raises 504 if the store has not reached it."""
        if revision <= self.cache.revision:
            return
        # Another replica may have given the revision out: a request to the store makes our own
        # watch catch up.
        await with_api_errors(self.store.barrier)
        if await self.cache.reached(revision):
            return
        raise too_new(revision, self.cache.revision)

    async def _committed(self, committing: Awaitable[int]) -> int:
        try:
            return await committing
        except Stale:
            raise
        except StoreError as error:
            raise self._write_error(error) from error

    def _write_error(self, error: StoreError) -> ApiError:
        """Return the API error of a failed write, and report the store as unavailable until a probe
        succeeds."""
        if isinstance(error, Unavailable):
            self._write_failure, self._refused_until = error, monotonic() + _REFUSED_SECONDS
        return as_api_error(error)

    async def _wait_for(self, revision: int) -> None:
        """Wait until the cache shows a revision of the store."""
        behind = revision > self.cache.revision
        if behind and not await self.cache.reached(revision, within=_PATIENCE):
            raise ServiceUnavailable(
                f"the watch cache is behind the store (at {self.cache.revision}, "
                f"waiting for {revision}); the write, if there was one, is done",
                retry_after=1,
            )

    @property
    def _has_bytes_elsewhere(self) -> bool:
        """Whether the cache's entries keep their bytes on disk or in an arena, so that the writer's
        own entry is the one with bytes at hand."""
        return self._entry_factory is not None or self._borrowed_factory is not None

    def _moved(self, move: Move) -> None:
        if self._borrowed_factory is not None:
            self._borrowed_factory.moved(self.cache.entry(move.key), move)

    def _borrow(
        self, factory: BorrowedEntryFactory, value: ArenaReference, record: Record, suffix: str
    ) -> CacheEntry:
        entry = factory.of_place(value, record.revision, suffix)
        draft = self._drafts.get(record.key)
        if draft is not None and draft.value == entry.stored() + b"\n":
            del self._drafts[record.key]
            draft.entry.revision, draft.entry.suffix = record.revision, suffix
            if draft.written_view is not None:
                draft.written_view(draft.entry)
            entry.learn(draft.entry)
        return entry

    def _ingest_loaded(self, record: Record, suffix: str) -> CacheEntry:
        if self.packer is None or record.key in self._drafts:
            return self._ingest(record, suffix)
        return self.packer.of_loaded(record, suffix)

    def _ingest(self, record: Record, suffix: str) -> CacheEntry:
        value = record.value
        if self._borrowed_factory is not None and isinstance(value, ArenaReference):
            return self._borrow(self._borrowed_factory, value, record, suffix)
        draft = self._drafts.get(record.key)
        if draft is None or draft.value != record.value:
            if self._entry_factory is not None:
                return self._entry_factory.of_record(record, suffix)
            return ingest(record, suffix)
        # A draft stands for one write: the same bytes may be written again.
        if draft.then is None:
            del self._drafts[record.key]
        else:
            self._drafts[record.key] = draft.then
        draft.entry.revision, draft.entry.suffix = record.revision, suffix
        draft.entry.seal = record.seal
        if draft.written_view is not None:
            draft.written_view(draft.entry)
        if self._entry_factory is not None:
            return self._entry_factory.of_written(draft.entry, record)
        return draft.entry


def too_new(revision: int, current: int) -> Timeout:
    """Return the error for a resourceVersion above the current one."""
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
    """Return a function that tells the latest revision another process may have shown a client."""
    if isinstance(store, RevisionTracker):
        return store.current
    return store.seen if isinstance(store, SharedStore) else None
