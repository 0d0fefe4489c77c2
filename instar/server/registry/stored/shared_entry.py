"""Stored objects whose views lie in memory that several processes share (``arena.py``).

The process that owns the store puts them there and keeps them as long as it has the entry; the
others (``BorrowedEntry``) read them, and take bytes of their own of what is written over: it may stay in
somebody's window of changes for longer than it is lent. Knows how a view is made of a value.
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
from instar.wire.storage.value_reader import Gone
from instar.wire.storage.workers.arena import ArenaView, length_at, length_of_all
from instar.wire.storage.workers.arena_reclaim import Borrowing, Elsewhere, Loans, Move

_MOST_KINDS = 4096
_NORMAL, _PLACE, _VIEW_SIZE = attrgetter("normal"), attrgetter("place"), attrgetter("view_size")


class SharedEntryKind(NamedTuple):
    """What many entries have in common: one for all of them."""

    arena: ArenaView
    api_version: str
    loans: Loans | None


class SharedEntry(CacheEntry):
    """Small, because every process has one of each object."""

    __slots__ = ("_kind", "_labels", "normal", "place")
    raw = None
    seal: Seal | None = None

    def __init__(self, kind: SharedEntryKind, place: int, revision: int, suffix: str) -> None:
        self._kind = kind
        self.place: int | InMemoryEntry = place
        """Where its view is: in the arena, or in bytes of our own."""
        self.revision = revision
        self.suffix = suffix
        self.token: object = None
        self.normal: bytes | None = None
        self._labels: dict[str, str] | None = None

    @property
    def ready(self) -> bytes:  # type: ignore[override]
        arena = self._kind.arena
        fence = arena.fence  # before the place: a thread may be overtaken between the two
        place = self.place
        if isinstance(place, InMemoryEntry):
            return place.ready
        try:
            return arena.read(place, fence)
        except Gone as gone:
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

    def near(self) -> InMemoryEntry:
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
            self._labels = self.near().labels
        return self._labels

    def learn(self, writer: InMemoryEntry) -> None:
        """What whoever wrote it knows already."""
        self._labels, self.token, self.normal = writer.known_labels, writer.token, writer.normal

    @property
    def arena(self) -> ArenaView:
        return self._kind.arena

    def keep_normal(self, near: InMemoryEntry, token: object) -> None:
        self.normal, self.token = near.normal, token


def _left_behind() -> ServiceUnavailable:
    """Only a process that the owner does not wait for any more reads what is not lent."""
    text = "this process was left behind by the one it belongs to"
    return ServiceUnavailable(text, retry_after=1)


class OwnedEntry(SharedEntry):
    """Its value is lent as long as this is here."""

    __slots__ = ()

    def replaced(self) -> None:
        """It stays in the window of changes, of which only this process knows."""
        place, self.place = self.place, self.near()
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
    __slots__ = ()

    def replaced(self) -> None:
        self.place = self.near()

    def moved(self, place: int) -> None:
        if isinstance(self.place, int):
            self.place = place


class _Kinds:
    def __init__(self, arena: ArenaView, loans: Loans | None = None) -> None:
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
    """Makes the owner's entries."""

    def __init__(self, loans: Loans) -> None:
        self._loans = loans
        self._kinds = _Kinds(loans.arena, loans)

    def of_record(self, record: Record, suffix: str) -> CacheEntry:
        return self._lent(ingest(record, suffix), record.key)

    def of_held(self, held: InMemoryEntry, record: Record) -> CacheEntry:
        return self._lent(held, record.key)

    def move(self, entry: CacheEntry | None, key: str, place: int) -> Move | None:
        if not isinstance(entry, OwnedEntry) or entry.place != place:
            return None
        elsewhere = self._loans.put(key, entry.ready)
        assert elsewhere is not None  # there was room for one of its size
        entry.moved(elsewhere)
        return Move(key, entry.revision, elsewhere)

    def _lent(self, held: InMemoryEntry, key: str) -> CacheEntry:
        """Bytes that are not as we write them are nobody's to share: they stay as they are."""
        if held.raw is not None and (held.at >= 0 or _found(held)):
            held.make_ready()
        place = None
        if held.raw is None and held.seal is None:
            place = self._loans.put(key, held.ready)
        if place is None:
            return held
        lent = OwnedEntry(self._kinds.of(held.api_version), place, held.revision, held.suffix)
        lent.learn(held)
        return lent


def _found(held: InMemoryEntry) -> bool:
    """Where owner references have a uid, too, one look at the whole object finds its own."""
    with suppress(UnreadableEntry):
        held.content()
    return held.at >= 0


class BorrowedEntryFactory:
    """Makes the entries of the others."""

    def __init__(self, store: Borrowing) -> None:
        self._store = store
        self._kinds = _Kinds(store.arena)

    def of_place(self, value: Elsewhere, revision: int, suffix: str) -> BorrowedEntry:
        arena = self._store.arena
        if arena is not self._kinds.arena:
            self._kinds = _Kinds(arena)
        try:
            view = arena.read(value.place, arena.fence)
        except Gone as gone:
            raise _left_behind() from gone
        api_version = InMemoryEntry.of_view(view, revision, suffix).api_version
        return BorrowedEntry(self._kinds.of(api_version), value.place, revision, suffix)

    def moved(self, entry: CacheEntry | None, move: Move) -> None:
        if isinstance(entry, BorrowedEntry) and entry.revision == move.revision:
            entry.moved(move.place)


class Places(NamedTuple):
    """Where the views of some entries lie, all of them in the arena, when it was looked up."""

    at: list[int]
    size: int
    """Bytes of all of them."""
    arena: ArenaView
    fence: int


def places_of(entries: Sequence[CacheEntry]) -> Places | None:
    """Of entries that are known to be normal; None, if one is somewhere else. Lists of any length
    come through here, so nothing of it is done in Python for each."""
    first = entries[0] if entries else None
    if not isinstance(first, SharedEntry) or any(map(_NORMAL, entries)):
        return None
    arena = first.arena
    fence = arena.fence  # before the places: a thread may be overtaken between the two
    try:
        at = list(map(_PLACE, entries))
        return Places(at, length_of_all(at), arena, fence)
    except (AttributeError, TypeError):
        return None


def views_of(entries: Sequence[CacheEntry]) -> list[bytes]:
    """Of entries that are known to be normal, those that are lent read all at once."""
    places = places_of(entries)
    if places is not None:
        with suppress(Gone):
            return places.arena.read_many(places.at, places.fence)
    return [entry.normal or entry.ready or entry.view for entry in entries]


class SharedViews(LazyViews):
    """A list of lent entries, read where they are at the moment when it is written. Their places
    are looked up once: what has moved can be read where it was until others lie there."""

    __slots__ = ("_at", "_places")

    def __init__(self, entries: Sequence[CacheEntry]) -> None:
        super().__init__(entries, views_of, 0)
        self.lasting = True
        self._at: list[int] = []
        self._places: Places | None = None

    @classmethod
    def of(cls, entries: Sequence[CacheEntry]) -> SharedViews | None:
        """To be told of every part of them; None where they are not all lent."""
        if not isinstance(entries[0], SharedEntry) or len({*map(type, entries)}) > 1:
            return None
        return cls(entries)

    def add(self, part: Sequence[CacheEntry]) -> None:
        """The next of its entries are known to be normal."""
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
            with suppress(Gone):
                return self._places.arena.join(b",", self._at[start:stop], self._places.fence)
        return super()._piece(start, stop)


def place_of(entry: CacheEntry | None, revision: int) -> int | None:
    """Where an entry of the owner can be borrowed, if it is the one of ``revision``."""
    if (
        isinstance(entry, SharedEntry)
        and entry.revision == revision
        and isinstance(entry.place, int)
    ):
        return entry.place
    return None
