"""The ``Store`` contract: bytes under keys with one global revision, modelled on etcd.

Implemented by memory, SQLite, etcd, PostgreSQL and worker stores, which pass ``tests/contract``.
The protocols below ``Store`` are optional abilities of a backend. Values are opaque bytes;
the server reads them through ``watchcache/cache.py``, which follows a store by ``subscribe``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from instar.base.metrics import Metric


class Seal(NamedTuple):
    """The encryption key under which a value is stored; absent for plaintext values."""

    name: str
    mark: str = ""
    """Distinguishes several keys of that name; never shown."""
    problem: str = ""
    """Why decryption failed; the value is then the stored ciphertext."""


class Record(NamedTuple):
    """The value of a key as of ``revision``, the revision of its last write."""

    key: str
    value: bytes
    revision: int
    seal: Seal | None = None


class Event(NamedTuple):
    """One committed write. ``value`` is ``None`` for a deletion."""

    key: str
    value: bytes | None
    revision: int
    seal: Seal | None = None


Logged = tuple[str, bytes | None, int, Seal | None]
"""Fields of an ``Event`` as a plain tuple, used where there are millions."""


class Page(NamedTuple):
    """A slice of a range, in byte order of keys, as of ``revision``."""

    records: Sequence[Record]
    revision: int
    more: bool


class Write(NamedTuple):
    """Set ``key`` to ``value`` (``None``: delete) if its revision is ``expected`` (0: absent)."""

    key: str
    value: bytes | None
    expected: int


class StoreError(Exception):
    """Base of the errors a backend may raise; ``str()`` is fit for an operator to read."""


class UnusableStore(StoreError):
    """The URL or file is not a store that this program can open; nothing was changed."""


class StoreInUse(StoreError):
    """Another process holds the file."""


class Stale(StoreError):
    """The key's revision is not the expected one; nothing was written."""

    def __init__(self, key: str, expected: int, actual: int) -> None:
        super().__init__(f"{key}: expected revision {expected}, found {actual}")
        self.key, self.expected, self.actual = key, expected, actual


class Compacted(StoreError):
    """The requested revision is compacted; ``oldest`` is the first revision still readable."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"required revision has been compacted; the oldest available is {oldest}")
        self.oldest = oldest


class Unavailable(StoreError):
    """The backend cannot answer now (disk full, cluster without leader); a retry may help."""


class StoreLost(Unavailable):
    """The backend is permanently unavailable to this process."""


class Ahead(StoreError):
    """The requested revision is newer than the store."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is ahead of the store's, {current}")
        self.revision, self.current = revision, current


class ValueTooLarge(StoreError):
    """The backend refuses a value of this size."""


Sink = Callable[[Sequence[Event], int], None]
"""Receives events in revision order and the revision they bring the follower to."""

Ended = Callable[[StoreError], None]
"""Called once when a subscription ends with an error; the follower must load again."""


class Subscription(Protocol):
    """Handle of a listener; closing it ends the events."""

    def close(self) -> None: ...


class Store(Protocol):
    """Interface of every backend. A write is acknowledged only when it is durable.

    When ``commit`` returns, a local store has passed the event to every subscriber of this process;
    a remote store will do so without a gap. ``Cache.reached`` bridges the two.
    """

    async def get(self, key: str) -> Record | None: ...

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        """Return keys with ``prefix``, from ``start`` on (``revision`` 0: now; ``limit`` 0: all).

        Raises ``Compacted`` below the compacted revision (which itself is readable), ``Ahead``.
        """
        ...

    async def commit(self, write: Write) -> int:
        """Return the revision of the write. Raises ``Stale``, ``Unavailable``, ``ValueTooLarge``.

        ``Unavailable`` does not promise that nothing was written. Deleting needs the revision of a
        live key: ``expected`` 0 is a ``ValueError``.
        """
        ...

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        """Pass every event above revision ``after`` to ``sink``, without gap or repeat, then live
        ones.

        Raises ``Compacted`` (or calls ``ended``) when that history is compacted.
        """
        ...

    async def barrier(self) -> int:
        """Return a revision at least as new as every write acknowledged before the call, by any
        client."""
        ...

    async def compact(self, revision: int) -> None:
        """Drop history at and below ``revision``; values current at ``revision`` stay.

        Compacting again is no error; ``Ahead`` for a revision the store has not reached.
        """
        ...

    async def close(self) -> None: ...


class Past(NamedTuple):
    """Events of one key, oldest first."""

    events: Sequence[Event]
    more: bool
    """Whether older events exist beyond the limit."""
    compacted: int = 0
    """Compacted revision: of older history only the value current at it is kept."""


@runtime_checkable
class Remembering(Protocol):
    """A store that can list the past events of a key, down to the compacted revision."""

    async def past(self, key: str, *, before: int = 0, limit: int = 0) -> Past:
        """Return the last ``limit`` events (0: all) below the revision ``before`` (0: all).

        The first event may be older than the compacted revision: the value that was current then.
        """
        ...


@runtime_checkable
class HistorySizedStore(Protocol):
    """A store that can measure the size of its history."""

    async def excess(self, most_bytes: int, most_writes: int) -> int:
        """Return the revision to compact to so that history fits both limits; 0 if it fits."""
        ...


@runtime_checkable
class RevisionTracker(Protocol):
    """A store outside this process with a revision that is readable without waiting."""

    def current(self) -> int:
        """Return the revision that ``barrier`` would return, without waiting."""
        ...


@runtime_checkable
class SharedStore(Protocol):
    """A store that other processes of this server use, too."""

    def seen(self) -> int:
        """Return an upper bound of the revisions seen by the processes, without waiting. A process
        below it may be behind an answer that a client got from another."""
        ...


@runtime_checkable
class Sealing(Protocol):
    """A store that encrypts values."""

    def seal_of(self, collection: str) -> Seal | None:
        """Return the encryption key that a write to the collection would use now."""
        ...


@runtime_checkable
class Wrapper(Protocol):
    """A store that delegates to another one (``inner``)."""

    inner: Store


def unwrapped_store(store: Store) -> Store:
    """Return the store that holds the data on disk, without any wrapper."""
    return store.inner if isinstance(store, Wrapper) else store


@runtime_checkable
class Chaining(Protocol):
    """A store that can commit several writes of one key atomically, each with a revision."""

    async def commit_chain(self, write: Write, later: Sequence[bytes]) -> int:
        """Commit the write and the values that follow it under the same key: all or none.

        Return the revision of the first; the others have the next ones. Raises as ``commit``.
        """
        ...

    def under_way(self, prefix: str) -> bool:
        """Return whether an accepted write below the prefix is not yet visible."""
        ...


@runtime_checkable
class RaisableStore(Protocol):
    """A store whose revision can be raised, so that it is above that of another server."""

    async def raise_revision(self, least: int) -> None:
        """Give every later write a revision above ``least``. Durable once one was committed."""
        ...


@runtime_checkable
class Expecting(Protocol):
    """A remote store that may be ahead of the events its followers have received."""

    def expect(self, revision: int) -> None:
        """Make sure that followers reach this revision, because a reader waits for it."""
        ...


@runtime_checkable
class RemotelyOwnedStore(Protocol):
    """A store owned by another process, which is unusable without that process."""

    async def lost(self) -> None:
        """Wait until the owner is gone, then raise ``StoreLost``."""
        ...


@runtime_checkable
class PlacedValue(Protocol):
    """A store on a shared cluster, in which a key is stored under a longer name."""

    def place(self, key: str) -> bytes:
        """Return the whole key as stored in the cluster."""
        ...


@runtime_checkable
class Checkable(Protocol):
    """A store with a health check that writes."""

    async def check(self) -> None:
        """Do a durable write that changes nothing. Raises ``StoreError``."""
        ...


@runtime_checkable
class HotBackup(Protocol):
    """A store that can copy itself to a file while it is in use."""

    async def backup(self) -> Path:
        """Write a consistent copy beside the store and return its path; the caller removes it.

        Raises ``Unavailable`` when there is no room for it.
        """
        ...


@runtime_checkable
class MeasuredStore(Protocol):
    """A store with its own metrics."""

    def metrics(self) -> Sequence[Metric]: ...


@runtime_checkable
class SelfCheckingStore(Protocol):
    """A store that can check its own bookkeeping besides the values."""

    async def problems(self) -> list[str]:
        """Return one line for each inconsistency. Raises ``StoreError``."""
        ...


@runtime_checkable
class Local(Protocol):
    """A store in this process: it has no other writers and is always reachable.

    Its log can be read directly, so that a follower need not page through it at start.
    """

    @property
    def compacted(self) -> int:
        """Compacted revision: older superseded writes are deleted, or about to be."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Return the number of kept writes per collection."""
        ...

    def log(self, until: int, prefixes: Collection[str] | None = None) -> Iterator[Logged]:
        """Yield every kept write up to ``until`` in order, of these collections or of all. Writes
        up to the compacted revision add up to the state at that revision."""
        ...

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield (key below the prefix, revision) of live keys, in the order of the log as far as
        possible, so that callers can share the strings. Ends early when a write intervenes."""
        ...
