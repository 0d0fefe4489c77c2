"""The storage seam: bytes under keys, one global revision. etcd's contract and nothing more.

A ``Store`` knows no Kubernetes object. Every backend passes ``tests/contract``. Reads of the
server come from ``wire/storage/watchcache/cache.py``, which follows a store through ``subscribe``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Seal(NamedTuple):
    """Under which key a value lies in the store, where it does not lie there as it is."""

    name: str
    mark: str = ""
    """Which of several keys of that name; never shown."""
    problem: str = ""
    """Why the value could not be opened: then it is what lies in the store."""


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
"""What an ``Event`` says, without its names: for where there are millions."""


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
    """Base of what a backend may raise; ``str()`` is fit for an operator to read."""


class Stale(StoreError):
    """The key's revision is not the expected one; nothing was written."""

    def __init__(self, key: str, expected: int, actual: int) -> None:
        super().__init__(f"{key}: expected revision {expected}, found {actual}")
        self.key, self.expected, self.actual = key, expected, actual


class Compacted(StoreError):
    """The asked revision's history is gone; ``oldest`` is the first revision still readable."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"required revision has been compacted; the oldest available is {oldest}")
        self.oldest = oldest


class Unavailable(StoreError):
    """The backend cannot answer now (disk full, cluster without leader); trying later may help."""


class StoreLost(Unavailable):
    """The backend is gone and does not come back for this process."""


class Ahead(StoreError):
    """The asked revision is newer than the store."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is ahead of the store's, {current}")
        self.revision, self.current = revision, current


class ValueTooLarge(StoreError):
    """The backend refuses a value of this size."""


Sink = Callable[[Sequence[Event], int], None]
"""Receives events in revision order and the revision they bring the follower to."""

Ended = Callable[[StoreError], None]
"""Told once when a subscription cannot go on; the follower must load again."""


class Subscription(Protocol):
    def close(self) -> None: ...


class Store(Protocol):
    """What a backend must do. A write is acknowledged only when it is durable.

    When ``commit`` returns, every subscriber of this process has already been handed the event
    (local stores), or will be without a gap (remote ones): ``Cache.reached`` bridges the two.
    """

    async def get(self, key: str) -> Record | None: ...

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        """Keys with ``prefix``, from ``start`` on; ``revision`` 0 is now; 0 ``limit`` is all.

        Raises ``Compacted`` below the compacted revision (which itself is readable), ``Ahead``.
        """
        ...

    async def commit(self, write: Write) -> int:
        """The revision of the write. Raises ``Stale``, ``Unavailable``, ``ValueTooLarge``.

        ``Unavailable`` does not promise that nothing was written. Deleting needs the revision of
        a live key: ``expected`` 0 is a ``ValueError``.
        """
        ...

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        """Every event with a revision above ``after``, without gap or repeat, then live ones.

        Raises ``Compacted`` (or tells ``ended``) when that history is gone.
        """
        ...

    async def barrier(self) -> int:
        """A revision at least as new as every write acknowledged before the call, by anyone."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget history at and below ``revision``; values current at ``revision`` stay.

        Doing it again is no error; ``Ahead`` for a revision the store has not reached.
        """
        ...

    async def close(self) -> None: ...


class Past(NamedTuple):
    """What happened to one key, oldest first."""

    events: Sequence[Event]
    more: bool
    """Whether there are older ones than were asked for."""
    compacted: int = 0
    """What happened up to this revision is forgotten, but for what was current then."""


@runtime_checkable
class Remembering(Protocol):
    """A store that can tell what happened to a key, as far as it is not compacted."""

    async def past(self, key: str, *, before: int = 0, limit: int = 0) -> Past:
        """The last ``limit`` events (0: all) below the revision ``before`` (0: all there are).

        The first may be older than the compacted revision: the value that was current then.
        """
        ...


@runtime_checkable
class HistorySizedStore(Protocol):
    """A store that knows how much of it is history."""

    async def excess(self, most_bytes: int, most_writes: int) -> int:
        """The revision to compact to, so that no more history than that is left; 0: none."""
        ...


@runtime_checkable
class Near(Protocol):
    """A store that is not in this process but so near that its revision can be had for nothing."""

    def current(self) -> int:
        """What ``barrier`` answers, without waiting."""
        ...


@runtime_checkable
class SharedStore(Protocol):
    """A store that other processes of this server use, too."""

    def seen(self) -> int:
        """A revision that none of them has seen more than, without waiting. Who has seen less may
        be behind what a client was answered by another."""
        ...


@runtime_checkable
class Sealing(Protocol):
    """A store that keeps values under keys."""

    def seal_of(self, collection: str) -> Seal | None:
        """What a value written to the collection now would lie under."""
        ...


@runtime_checkable
class Wrapper(Protocol):
    """A store before another one."""

    inner: Store


def bare(store: Store) -> Store:
    """The store that holds what lies on the disk, whatever stands before it."""
    return store.inner if isinstance(store, Wrapper) else store


@runtime_checkable
class Chaining(Protocol):
    """A store that can make several writes of one key durable at once, each with a revision."""

    async def commit_chain(self, write: Write, later: Sequence[bytes]) -> int:
        """The write, and values that follow it under the same key: all of them or none.

        The revision of the first; those of the others are the next ones. Raises as ``commit``.
        """
        ...

    def under_way(self, prefix: str) -> bool:
        """Whether a write below it is accepted that nobody can see yet."""
        ...


@runtime_checkable
class Expecting(Protocol):
    """A store that may have come further than it has told those who follow it."""

    def expect(self, revision: int) -> None:
        """Somebody waits for this revision: see that they are told."""
        ...


@runtime_checkable
class RemotelyOwnedStore(Protocol):
    """A store that is another process's, and of no use without it."""

    async def lost(self) -> None:
        """Waits until that is gone, and then raises ``StoreLost``."""
        ...


@runtime_checkable
class PlacedValue(Protocol):
    """A store that others may read, too: they know its keys by another name."""

    def place(self, key: str) -> bytes:
        """The whole key, as it lies in the store."""
        ...


@runtime_checkable
class Checkable(Protocol):
    """A store that can tell more of itself than whether it answers."""

    async def check(self) -> None:
        """Write something that changes nothing, durably. Raises ``StoreError``."""
        ...


@runtime_checkable
class Local(Protocol):
    """A store in this process: nobody else writes to it, and it cannot be away.

    What it keeps is at hand, so that a follower need not page through it at start.
    """

    @property
    def compacted(self) -> int:
        """What was written over or deleted up to this revision is forgotten, or about to be."""
        ...

    def counts(self) -> Mapping[str, int]:
        """How many writes of each collection are kept."""
        ...

    def log(self, until: int, prefixes: Collection[str] | None = None) -> Iterator[Logged]:
        """Every write up to ``until`` that is kept, of these collections or of all, in order:
        those up to the compacted revision lead to the state of then."""
        ...

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        """What follows the prefix in the keys that are there, with their revisions, in the order
        of the log as far as possible: for who wants to share these strings. Ends early where
        somebody writes meanwhile."""
        ...
