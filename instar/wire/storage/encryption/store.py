"""Encrypting store: a ``Store`` wrapper that encrypts on write and decrypts on read.

Created around the configured store by ``server/lifecycle/encryption_setup.py`` and
``cli/shared/encrypted_stores.py``. Readers see plaintext and the key used (``Record.seal``); the
inner store holds ciphertext. Values are decrypted once, when they enter the cache. While a KMS
plugin is called, later events wait in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, cast, runtime_checkable

from instar.base.supervision import is_being_cancelled, report_failure
from instar.wire.storage.encryption.providers import (
    EncryptionProviders,
    MissingKmsKey,
    default_place,
)
from instar.wire.storage.store import (
    Checkable,
    Ended,
    Event,
    HistorySizedStore,
    Local,
    Logged,
    Page,
    Past,
    PlacedValue,
    Record,
    Remembering,
    RevisionTracker,
    Seal,
    Sink,
    Store,
    StoreError,
    Subscription,
    Unavailable,
    Write,
)
from instar.wire.storage.value_reader import ValueReader, Values, ValuesNotReadable

log = logging.getLogger(__name__)
_CHUNK = 500
_PATIENCE = 10.0
"""Seconds that the event stream waits for a plugin that does not answer."""


class _OwnWrite(NamedTuple):
    """A write of this process in flight: its event need not be decrypted again."""

    sealed: bytes
    value: bytes
    seal: Seal | None


class _LocalStore(Store, Local, Protocol): ...


class _TrackingStore(Store, RevisionTracker, Protocol): ...


class EncryptingStore:
    """Encrypting wrapper of any store; subclasses add the abilities of the inner store."""

    def __init__(self, inner: Store, vault: EncryptionProviders) -> None:
        self.inner = inner
        self.vault = vault
        self.unopened = False
        """Whether a follower received a value that could not be decrypted."""
        self._place = inner.place if isinstance(inner, PlacedValue) else default_place
        self._own: dict[str, _OwnWrite] = {}
        self._relays: dict[_Relay, None] = {}

    def seal_of(self, collection: str) -> Seal | None:
        return self.vault.current(collection)

    def use(self, vault: EncryptionProviders) -> None:
        """Use another configuration from now on."""
        self.vault = vault

    def reopen(self, why: str) -> None:
        """End every subscription, so that followers reload and decrypt everything again."""
        self.unopened = False
        for relay in tuple(self._relays):
            relay.end(StoreError(why))

    async def get(self, key: str) -> Record | None:
        record = await self.inner.get(key)
        return None if record is None else (await self._opened([record]))[0]

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        page = await self.inner.range(prefix, start=start, limit=limit, revision=revision)
        return Page(await self._opened(page.records), page.revision, page.more)

    async def past(self, key: str, *, before: int = 0, limit: int = 0) -> Past:
        if not isinstance(self.inner, Remembering):
            raise StoreError("this store keeps no history")
        found = await self.inner.past(key, before=before, limit=limit)
        kept = [
            Record(key, value, revision)
            for key, value, revision, _ in found.events
            if value is not None
        ]
        opened = {record.revision: record for record in await self._opened(kept)}
        events = [
            event if event.value is None else Event(*opened[event.revision])
            for event in found.events
        ]
        return found._replace(events=events)

    async def commit(self, write: Write) -> int:
        if write.value is None:
            return await self.inner.commit(write)
        sealed, seal = await self.vault.seal(write.key, write.value, self._place(write.key))
        own = self._own[write.key] = _OwnWrite(sealed, write.value, seal)
        try:
            return await self.inner.commit(write._replace(value=sealed))
        finally:
            if self._own.get(write.key) is own:
                del self._own[write.key]

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        relay = _Relay(self, sink, ended, self._relays)
        relay.follow(self.inner.subscribe(after, relay.take, relay.end))
        return relay

    async def barrier(self) -> int:
        return await self.inner.barrier()

    async def compact(self, revision: int) -> None:
        await self.inner.compact(revision)

    async def excess(self, most_bytes: int, most_writes: int) -> int:
        inner = self.inner
        return (
            await inner.excess(most_bytes, most_writes)
            if isinstance(inner, HistorySizedStore)
            else 0
        )

    async def close(self) -> None:
        await self.inner.close()
        await self.vault.close()

    def opened_event(self, event: Event) -> Event:
        """Decrypt an event. Raises ``MissingKmsKey``."""
        key, value, revision, _ = event
        if value is None:
            return event
        own = self._own.get(key)
        if own is not None and own.sealed == value:
            return Event(key, own.value, revision, own.seal)
        plain, seal = self._open(key, value)
        return Event(key, plain, revision, seal)

    def _open(self, key: str, value: bytes) -> tuple[bytes, Seal | None]:
        plain, seal = self.vault.open(key, value, self._place(key))
        if seal is not None and seal.problem:
            self.unopened = True
        return plain, seal

    async def _opened(self, records: Sequence[Record]) -> list[Record]:
        """Decrypt records. Raises ``Unavailable`` where a plugin must be called and does not
        answer."""
        found: list[Record] = []
        for number, record in enumerate(records):
            if number and number % _CHUNK == 0:
                await asyncio.sleep(0)
            found.append(await self._opened_one(record))
        return found

    async def _opened_one(self, record: Record) -> Record:
        key, value, revision, _ = record
        while True:
            try:
                plain, seal = self._open(key, value)
                return Record(key, plain, revision, seal)
            except MissingKmsKey as missing:
                await missing.provider.learn(missing.envelope)


class EncryptingLocalStore(EncryptingStore):
    """Encrypting wrapper of a local store."""

    def __init__(self, inner: _LocalStore, vault: EncryptionProviders) -> None:
        super().__init__(inner, vault)
        self._local = inner

    async def check(self) -> None:
        if isinstance(self.inner, Checkable):
            await self.inner.check()

    @property
    def compacted(self) -> int:
        return self._local.compacted

    def counts(self) -> Mapping[str, int]:
        return self._local.counts()

    def log(self, until: int, prefixes: Collection[str] | None = None) -> Iterator[Logged]:
        return (self._opened_past(Event(*each)) for each in self._local.log(until, prefixes))

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        return self._local.names(prefix)

    async def warm(self) -> None:
        """Have the plugins decrypt every seed in the log, because reading the log cannot wait."""
        if not self.vault.kms:
            return
        missing: dict[bytes, MissingKmsKey] = {}
        for number, event in enumerate(map(Event._make, self._local.log(await self.barrier()))):
            if number % _CHUNK == _CHUNK - 1:
                await asyncio.sleep(0)
            try:
                self.opened_event(event)
            except MissingKmsKey as found:
                missing[found.envelope.identity()] = found
        for one in missing.values():
            await one.provider.learn(one.envelope)

    def values(self) -> Values:
        """Return a decrypting reader. Raises ``StoreError`` if the inner store has none."""
        inner = self.inner.values() if isinstance(self.inner, ValueReader) else None
        if not isinstance(inner, Rows):
            raise ValuesNotReadable
        return DecryptingValues(inner, self)

    def _opened_past(self, event: Event) -> Event:
        try:
            return self.opened_event(event)
        except MissingKmsKey as missing:
            return _undecrypted(event, str(missing))


@runtime_checkable
class Rows(Protocol):
    """A ``Values`` that can also return the key of a value."""

    def keep(self, record: Record) -> int: ...

    def row(self, place: int) -> tuple[str, bytes]: ...

    def rows(self, places: Sequence[int]) -> list[tuple[str, bytes]]: ...


class DecryptingValues:
    """Reader by location that decrypts on each read, so that no plaintext is kept."""

    def __init__(self, inner: Rows, store: EncryptingLocalStore) -> None:
        self._inner, self._store = inner, store

    def keep(self, record: Record) -> int:
        return self._inner.keep(record)

    def read(self, place: int) -> bytes:
        return self._opened(*self._inner.row(place))

    def read_many(self, places: Sequence[int]) -> list[bytes]:
        return [self._opened(key, value) for key, value in self._inner.rows(places)]

    def _opened(self, key: str, value: bytes) -> bytes:
        """Decrypt, or return the ciphertext if it could not be decrypted at load either. Raises
        ``Unavailable`` for a seed that was evicted and must be requested again."""
        try:
            return self._store.opened_event(Event(key, value, 0)).value or b""
        except MissingKmsKey as missing:
            raise Unavailable(str(missing)) from missing


class EncryptingSharedStore(EncryptingStore):
    """Encrypting wrapper of a store that another process of this server shares."""

    def __init__(self, inner: _TrackingStore, vault: EncryptionProviders) -> None:
        super().__init__(inner, vault)
        self._near = inner

    def current(self) -> int:
        return self._near.current()


def encrypt_store(store: Store, vault: EncryptionProviders) -> EncryptingStore:
    """Wrap the store for encryption, preserving its optional abilities."""
    if isinstance(store, Local):
        return EncryptingLocalStore(cast(_LocalStore, store), vault)
    if isinstance(store, RevisionTracker):
        return EncryptingSharedStore(cast(_TrackingStore, store), vault)
    return EncryptingStore(store, vault)


class _Relay:
    """One subscription: forwards events at once, or queues them while a plugin is called."""

    def __init__(
        self, store: EncryptingStore, sink: Sink, ended: Ended, relays: dict[_Relay, None]
    ) -> None:
        self._store, self._sink, self._ended = store, sink, ended
        self._relays = relays
        self._inner: Subscription | None = None
        self._waiting: deque[tuple[Sequence[Event], int]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        relays[self] = None

    def follow(self, inner: Subscription) -> None:
        self._inner = inner
        if self._closed:
            inner.close()

    def take(self, events: Sequence[Event], revision: int) -> None:
        if self._closed:
            return
        if not self._waiting:
            try:
                self._sink([self._store.opened_event(event) for event in events], revision)
                return
            except MissingKmsKey:
                self._task = asyncio.get_running_loop().create_task(self._work())
        self._waiting.append((events, revision))

    def end(self, why: StoreError) -> None:
        if not self._closed:
            self.close()
            self._ended(why)

    def close(self) -> None:
        self._closed = True
        self._relays.pop(self, None)
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        if self._inner is not None:
            self._inner.close()

    async def _work(self) -> None:
        while self._waiting:
            events, revision = self._waiting[0]
            try:
                opened = [await self._opened(event) for event in events]
                self._sink(opened, revision)
            except (Exception, asyncio.CancelledError) as error:
                if is_being_cancelled(error):
                    raise
                report_failure("encryption-at-rest", error, f"revision {revision}")
                self.end(StoreError("the follower failed on an event"))
                return
            self._waiting.popleft()

    async def _opened(self, event: Event) -> Event:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + _PATIENCE, 0.05
        while True:
            try:
                return self._store.opened_event(event)
            except MissingKmsKey as missing:
                try:
                    await missing.provider.learn(missing.envelope)
                except Unavailable as error:
                    if loop.time() + pause > deadline:
                        log.warning("cannot decrypt %s for now: %s", event.key, error)
                        self._store.unopened = True
                        return _undecrypted(event, str(error))
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, 1.0)


def _undecrypted(event: Event, why: str) -> Event:
    return event._replace(seal=Seal("unknown", problem=why))
