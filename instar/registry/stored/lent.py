"""Stored objects whose views lie in memory that several processes share (``storage/arena.py``).

The process that owns the store puts them there and keeps them as long as it has the entry; the
others (``Borrowed``) read them, and take bytes of their own of what is written over: it may stay in
somebody's window of changes for longer than it is lent. Knows how a view is made of a value.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.errors import ServiceUnavailable
from instar.registry.stored.entry import Entry, Held, Unreadable, ingest
from instar.storage.arena import ArenaView
from instar.storage.lending import Elsewhere, Loans
from instar.storage.store import Record, Seal
from instar.storage.values import Gone

_MOST_KINDS = 4096


class Kind(NamedTuple):
    """What many entries have in common: one for all of them."""

    arena: ArenaView
    api_version: str
    loans: Loans | None = None


class Lent(Entry):
    """Small, because every process has one of each object."""

    __slots__ = ("_kind", "_labels", "normal", "place")
    raw = None
    seal: Seal | None = None

    def __init__(self, kind: Kind, place: int, revision: int, suffix: str) -> None:
        self._kind = kind
        self.place: int | Held = place
        """Where its view is: in the arena, or in bytes of our own."""
        self.revision = revision
        self.suffix = suffix
        self.token: object = None
        self.normal: bytes | None = None
        self._labels: dict[str, str] | None = None

    @property
    def ready(self) -> bytes:  # type: ignore[override]
        place = self.place
        if isinstance(place, Held):
            return place.ready
        try:
            return self._kind.arena.read(place)
        except Gone as gone:
            raise _left_behind() from gone

    @property
    def view(self) -> bytes:
        return self.ready

    @property
    def size(self) -> int:
        place = self.place
        return place.size if isinstance(place, Held) else self._kind.arena.length(place)

    def near(self) -> Held:
        place = self.place
        if isinstance(place, Held):
            return place
        try:
            arena = self._kind.arena
            held = Held.of_view(arena.read(place), arena.cut(place), self.revision, self.suffix)
        except Gone as gone:
            raise _left_behind() from gone
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

    def learn(self, writer: Held) -> None:
        """What whoever wrote it knows already."""
        self._labels, self.token, self.normal = writer.known_labels, writer.token, writer.normal

    def keep_normal(self, near: Held, token: object) -> None:
        self.normal, self.token = near.normal, token


def _left_behind() -> ServiceUnavailable:
    """Only a process that the owner does not wait for any more reads what is not lent."""
    text = "this process was left behind by the one it belongs to"
    return ServiceUnavailable(text, retry_after=1)


class Owned(Lent):
    """Its value is lent as long as this is here."""

    __slots__ = ()

    def __del__(self) -> None:
        loans = self._kind.loans
        if loans is not None and isinstance(self.place, int):
            loans.drop(self.place)


class Borrowed(Lent):
    __slots__ = ()

    def replaced(self) -> None:
        self.place = self.near()


class _Kinds:
    def __init__(self, arena: ArenaView, loans: Loans | None) -> None:
        self._arena, self._loans = arena, loans
        self._known: dict[str, Kind] = {}

    def of(self, api_version: str) -> Kind:
        kind = self._known.get(api_version)
        if kind is None:
            kind = Kind(self._arena, api_version, self._loans)
            if len(self._known) < _MOST_KINDS:
                self._known[api_version] = kind
        return kind


class Lender:
    """Makes the owner's entries."""

    def __init__(self, loans: Loans) -> None:
        self._loans = loans
        self._kinds = _Kinds(loans.arena, loans)

    def of_record(self, record: Record, suffix: str) -> Entry:
        held = ingest(record, suffix)
        if held.raw is not None:
            _find_place(held)
        return self._lent(held)

    def of_held(self, held: Held, record: Record) -> Entry:
        return self._lent(held)

    def _lent(self, held: Held) -> Entry:
        """Bytes that are not as we write them are nobody's to share: they stay as they are."""
        if held.raw is not None and held.at >= 0:
            held.make_ready()
        place = None
        if held.raw is None and held.seal is None:
            place = self._loans.put(held.ready, held.at)
        if place is None:
            return held
        lent = Owned(self._kinds.of(held.api_version), place, held.revision, held.suffix)
        lent.learn(held)
        return lent


def _find_place(held: Held) -> None:
    """Where owner references have a uid, too, one look at the whole object finds its own."""
    try:
        held.content()
    except Unreadable:
        return


class Borrower:
    """Makes the entries of the others."""

    def __init__(self, arena: ArenaView) -> None:
        self._arena = arena
        self._kinds = _Kinds(arena, None)

    def of_place(self, value: Elsewhere, revision: int, suffix: str) -> Borrowed:
        try:
            view = self._arena.read(value.place)
        except Gone as gone:
            raise _left_behind() from gone
        api_version = Held.of_view(view, 0, revision, suffix).api_version
        return Borrowed(self._kinds.of(api_version), value.place, revision, suffix)


def place_of(entry: Entry | None, revision: int) -> int | None:
    """Where an entry of the owner can be borrowed, if it is the one of ``revision``."""
    if isinstance(entry, Lent) and entry.revision == revision and isinstance(entry.place, int):
        return entry.place
    return None
