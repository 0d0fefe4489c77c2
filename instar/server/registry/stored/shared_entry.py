"""Cache entries with their bytes in a shared-memory arena, with ``serve --workers``.

``backend.py`` makes them. The process that owns the store puts the bytes there and keeps them as
long as its entry lives (``OwnedEntry``); the workers read them in place (``BorrowedEntry``), and
copy the bytes of an entry that is replaced, because their window of changes may need it longer than
the owner keeps it. The arena itself is in ``wire/storage/workers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import attrgetter
from typing import NamedTuple

from instar.base.errors import ServiceUnavailable
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry, UnreadableEntry, ingest
from instar.server.registry.stored.views import LazyViews
from instar.wire.storage.store import Record, Seal
from instar.wire.storage.value_reader import ValueGone
from instar.wire.storage.workers.arena import ArenaView, length_at, length_of_all
from instar.wire.storage.workers.arena_reclaim import (
    ArenaReadingStore,
    ArenaReference,
    Move,
    Reclaimer,
)

_MOST_KINDS = 4096
_NORMAL, _PLACE, _VIEW_SIZE = attrgetter("normal"), attrgetter("place"), attrgetter("view_size")


class SharedEntryKind(NamedTuple):
    """What many shared entries have in common, so that each holds one reference for it."""

    arena: ArenaView
    api_version: str
    loans: Reclaimer | None


class SharedEntry(CacheEntry):
    """Entry with its bytes in the arena. Kept small, because every process has one per object."""

    __slots__ = ("_kind", "_labels", "normal", "place")
    raw = None
    seal: Seal | None = None

    def __init__(self, kind: SharedEntryKind, place: int, revision: int, suffix: str) -> None:
        self._kind = kind
        self.place: int | InMemoryEntry = place
        """Location of the view in the arena, or an entry with its own copy of the bytes."""
        self.revision = revision
        self.suffix = suffix
        self.token: object = None
        self.normal: bytes | None = None
        self._labels: dict[str, str] | None = None

    @property
    def ready(self) -> bytes:  # type: ignore[override]
        arena = self._kind.arena
        fence = (
            arena.fence
        )  # before the location: another thread may move the bytes between the two
        place = self.place
        if isinstance(place, InMemoryEntry):
            return place.ready
        try:
            return arena.read(place, fence)
        except ValueGone as gone:
            if fence == arena.fence:
                raise _left_behind() from gone
            return self.ready

    @property
    def view(self) -> bytes:
        return self.ready

    @property
    def size(self) -> int:
        place = self.place
        return place.size if isinstance(place, InMemoryEntry) else length_at(place)

    @property
    def view_size(self) -> int:
        return self.size if self.normal is None else len(self.normal)

    def load(self) -> InMemoryEntry:
        view, place = self.ready, self.place
        if isinstance(place, InMemoryEntry):
            return place
        held = InMemoryEntry.of_view(view, self.revision, self.suffix)
        held.token, held.normal = self.token, self.normal
        return held

    @property
    def api_version(self) -> str:
        return self._kind.api_version

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            self._labels = self.load().labels
        return self._labels

    def learn(self, writer: InMemoryEntry) -> None:
        """Take over what the writer knows."""
        self._labels, self.token, self.normal = writer.known_labels, writer.token, writer.normal

    @property
    def arena(self) -> ArenaView:
        return self._kind.arena

    def keep_normal(self, loaded: InMemoryEntry, token: object) -> None:
        self.normal, self.token = loaded.normal, token


def _left_behind() -> ServiceUnavailable:
    """Return the 503 of a worker that the owner has given up on: its arena may be overwritten."""
    text = "this worker lost its connection to the process that owns the store"
    return ServiceUnavailable(text, retry_after=1)


class OwnedEntry(SharedEntry):
    """The owner's entry: its bytes stay in the arena as long as the entry lives."""

    __slots__ = ()

    def replaced(self) -> None:
        """Copy the bytes for this process's window of changes, and free them in the arena."""
        place, self.place = self.place, self.load()
        self._drop(place)

    def moved(self, place: int) -> None:
        before, self.place = self.place, place
        self._drop(before)

    def _drop(self, place: int | InMemoryEntry) -> None:
        loans = self._kind.loans
        if loans is not None and isinstance(place, int):
            loans.drop(place)

    def __del__(self) -> None:
        self._drop(self.place)


class BorrowedEntry(SharedEntry):
    """A worker's entry."""

    __slots__ = ()

    def replaced(self) -> None:
        self.place = self.load()

    def moved(self, place: int) -> None:
        if isinstance(self.place, int):
            self.place = place


class _Kinds:
    """Interns ``SharedEntryKind`` by apiVersion."""

    def __init__(self, arena: ArenaView, loans: Reclaimer | None = None) -> None:
        self.arena = arena
        self._loans = loans
        self._known: dict[str, SharedEntryKind] = {}

    def of(self, api_version: str) -> SharedEntryKind:
        kind = self._known.get(api_version)
        if kind is None:
            kind = SharedEntryKind(self.arena, api_version, self._loans)
            if len(self._known) < _MOST_KINDS:
                self._known[api_version] = kind
        return kind


class OwnedEntryFactory:
    """Makes the owner's entries and puts their bytes into the arena."""

    def __init__(self, loans: Reclaimer) -> None:
        self._loans = loans
        self._kinds = _Kinds(loans.arena, loans)

    def of_record(self, record: Record, suffix: str) -> CacheEntry:
        return self._put_into_arena(ingest(record, suffix), record.key)

    def of_written(self, held: InMemoryEntry, record: Record) -> CacheEntry:
        return self._put_into_arena(held, record.key)

    def move(self, entry: CacheEntry | None, key: str, place: int) -> Move | None:
        """Move an entry's bytes to another segment, so that the old one can be freed."""
        if not isinstance(entry, OwnedEntry) or entry.place != place:
            return None
        elsewhere = self._loans.put(key, entry.ready)
        assert elsewhere is not None  # the old location had the same size
        entry.moved(elsewhere)
        return Move(key, entry.revision, elsewhere)

    def _put_into_arena(self, held: InMemoryEntry, key: str) -> CacheEntry:
        """Put an entry's bytes into the arena. Bytes that this server did not write, encrypted
        ones, and those that do not fit stay in memory of this process."""
        if held.raw is not None and (held.at >= 0 or _finds_version(held)):
            held.make_ready()
        place = None
        if held.raw is None and held.seal is None:
            place = self._loans.put(key, held.ready)
        if place is None:
            return held
        lent = OwnedEntry(self._kinds.of(held.api_version), place, held.revision, held.suffix)
        lent.learn(held)
        return lent


def _finds_version(held: InMemoryEntry) -> bool:
    """Return whether parsing the object finds the place of its resourceVersion: owner references
    have a uid, too, so that a search alone cannot."""
    with suppress(UnreadableEntry):
        held.content()
    return held.at >= 0


class BorrowedEntryFactory:
    """Makes a worker's entries from locations in the arena."""

    def __init__(self, store: ArenaReadingStore) -> None:
        self._store = store
        self._kinds = _Kinds(store.arena)

    def of_place(self, value: ArenaReference, revision: int, suffix: str) -> BorrowedEntry:
        arena = self._store.arena
        if arena is not self._kinds.arena:
            self._kinds = _Kinds(arena)
        try:
            view = arena.read(value.place, arena.fence)
        except ValueGone as gone:
            raise _left_behind() from gone
        api_version = InMemoryEntry.of_view(view, revision, suffix).api_version
        return BorrowedEntry(self._kinds.of(api_version), value.place, revision, suffix)

    def moved(self, entry: CacheEntry | None, move: Move) -> None:
        if isinstance(entry, BorrowedEntry) and entry.revision == move.revision:
            entry.moved(move.place)


class Places(NamedTuple):
    """Arena locations of the views of some entries, and the fence under which they were read."""

    at: list[int]
    size: int
    """The sum of their lengths."""
    arena: ArenaView
    fence: int


def places_of(entries: Sequence[CacheEntry]) -> Places | None:
    """Return the locations of normal entries; None if an entry is not in the arena. Used for lists
    of any length, so that nothing of it runs in Python per entry."""
    first = entries[0] if entries else None
    if not isinstance(first, SharedEntry) or any(map(_NORMAL, entries)):
        return None
    arena = first.arena
    fence = arena.fence  # before the locations: another thread may move the bytes in between
    try:
        at = list(map(_PLACE, entries))
        return Places(at, length_of_all(at), arena, fence)
    except (AttributeError, TypeError):
        return None


def views_of(entries: Sequence[CacheEntry]) -> list[bytes]:
    """Return the views of normal entries; those in the arena are read together."""
    places = places_of(entries)
    if places is not None:
        with suppress(ValueGone):
            return places.arena.read_many(places.at, places.fence)
    return [entry.normal or entry.ready or entry.view for entry in entries]


class SharedViews(LazyViews):
    """A list of entries in the arena, read when it is written. The locations are looked up once:
    moved bytes can be read at their old location until it is reused."""

    __slots__ = ("_at", "_places")

    def __init__(self, entries: Sequence[CacheEntry]) -> None:
        super().__init__(entries, views_of, 0)
        self.lasting = True
        self._at: list[int] = []
        self._places: Places | None = None

    @classmethod
    def of(cls, entries: Sequence[CacheEntry]) -> SharedViews | None:
        """Return a list to which every part of ``entries`` must be added; None if one is not in the
        arena."""
        if not isinstance(entries[0], SharedEntry) or len({*map(type, entries)}) > 1:
            return None
        return cls(entries)

    def add(self, part: Sequence[CacheEntry]) -> None:
        """Add the next entries, which are normal."""
        places = places_of(part)
        if places is None:
            self._size += sum(map(_VIEW_SIZE, part))
            return
        self._size += places.size
        if self._places is None:
            self._places = places
        if self._places[2:] == places[2:]:
            self._at += places.at

    def _piece(self, start: int, stop: int) -> bytes:
        if self._places is not None and len(self._at) == len(self._entries):
            with suppress(ValueGone):
                return self._places.arena.join(b",", self._at[start:stop], self._places.fence)
        return super()._piece(start, stop)


def place_of(entry: CacheEntry | None, revision: int) -> int | None:
    """Return the arena location of the owner's entry, if it is the one of ``revision``."""
    if (
        isinstance(entry, SharedEntry)
        and entry.revision == revision
        and isinstance(entry.place, int)
    ):
        return entry.place
    return None
