"""Packed cache entry: keeps an object's bytes compressed in memory and unpacks them for readers.

``packer.py`` puts such entries in the place of ``InMemoryEntry``s that were not written lately. A
list unpacks them while it is sent (``packed_views.py``). Any other reader gets an
``InMemoryEntry``, which ``HotValues`` keeps for the next reader within a budget.
``wire/storage/value_dictionary.py`` packs bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import NamedTuple

from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry, UnreadableEntry
from instar.wire.storage.store import Seal
from instar.wire.storage.value_dictionary import DamagedFrame, ValueDictionary

HOT_BYTES = 16 << 20
_LARGEST_HOT = HOT_BYTES // 8
_DICTIONARY, _PACKED = attrgetter("kind.dictionary"), attrgetter("packed")
_NORMAL = attrgetter("packed_normal")


class HotValues:
    """Unpacked copies of the packed entries that were read last, within a number of bytes.

    Two generations: when the young one is full, it becomes the old one, and the old one is dropped.
    A copy that is read again joins the young one.
    """

    def __init__(self, most: int = HOT_BYTES) -> None:
        self._half = most // 2
        self._room = self._half
        self._young: dict[PackedEntry, InMemoryEntry] = {}
        self._old: dict[PackedEntry, InMemoryEntry] = {}

    def get(self, entry: PackedEntry) -> InMemoryEntry | None:
        """Return the unpacked copy of an entry; None if it is not kept."""
        found = self._young.get(entry)
        if found is None:
            found = self._old.get(entry)
            if found is not None:
                self.keep(entry, found)
        return found

    def keep(self, entry: PackedEntry, loaded: InMemoryEntry) -> None:
        """Keep an unpacked copy, unless it would take much of the budget alone."""
        if entry.size > _LARGEST_HOT:
            return
        self._young[entry] = loaded
        self._room -= entry.size
        if self._room < 0:
            self._old, self._young, self._room = self._young, {}, self._half

    def clear(self) -> None:
        """Drop all copies."""
        self._young, self._old, self._room = {}, {}, self._half

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())


class PackedKind(NamedTuple):
    """What many packed entries have in common, so that each holds one reference for it."""

    dictionary: ValueDictionary
    api_version: str
    seal: Seal | None
    hot: HotValues


class PackedValue(NamedTuple):
    """The frame of a value, and the value's length."""

    frame: bytes
    size: int


class PackedEntry(CacheEntry):
    """Entry with compressed bytes. Kept small, because a cache may hold millions."""

    __slots__ = ("_labels", "_size", "kind", "packed", "packed_normal")
    raw = None

    def __init__(self, kind: PackedKind, value: PackedValue, held: InMemoryEntry) -> None:
        """``value`` is the view of ``held``, which this entry replaces."""
        self.kind = kind
        self.packed, self._size = value
        self.revision = held.revision
        self.suffix = held.suffix
        self.packed_normal: PackedValue | None = None
        self.token: object = held.token
        self._labels = held.known_labels
        if held.normal is not None:
            self.keep_normal(held, held.token)

    @property
    def ready(self) -> bytes:  # type: ignore[override]
        return self.load().ready

    @property
    def view(self) -> bytes:
        return self.load().ready

    @property
    def normal(self) -> bytes | None:  # type: ignore[override]
        return None if self.packed_normal is None else self.load().normal

    @property
    def size(self) -> int:
        return self._size

    @property
    def shown_size(self) -> int:
        """The length of the normal view."""
        return self._size if self.packed_normal is None else self.packed_normal.size

    def keep_normal(self, loaded: InMemoryEntry, token: object) -> None:
        """Pack the normal view of the unpacked entry, too; ``token`` says for which schema it is
        normal."""
        found = loaded.normal
        self.packed_normal = None
        if found is not None:
            self.packed_normal = PackedValue(self.kind.dictionary.pack(found), len(found))
        self.token = token

    def load(self) -> InMemoryEntry:
        """Return the unpacked entry, from ``HotValues`` if it was read lately."""
        hot = self.kind.hot
        found = hot.get(self)
        if found is None:
            found = self.fresh()
            hot.keep(self, found)
        return found

    def fresh(self) -> InMemoryEntry:
        """Return a copy that is not kept, for a reader that will not come back."""
        token, normal = self.token, self.packed_normal
        held = InMemoryEntry.of_view(self._unpacked(self.packed), self.revision, self.suffix)
        held.token, held.seal = token, self.kind.seal
        if normal is not None:
            held.normal = self._unpacked(normal.frame)
        return held

    def shown(self) -> bytes:
        """Return the normal view."""
        normal = self.packed_normal
        return self._unpacked(self.packed if normal is None else normal.frame)

    def _unpacked(self, frame: bytes) -> bytes:
        try:
            return self.kind.dictionary.unpack(frame)
        except DamagedFrame as error:
            raise UnreadableEntry(
                f"the packed value of {self.suffix} cannot be read: {error}"
            ) from error

    @property
    def api_version(self) -> str:
        return self.kind.api_version

    @property
    def seal(self) -> Seal | None:
        return self.kind.seal

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            self._labels = self.fresh().labels
        return self._labels


def has_packed(entries: Iterable[CacheEntry]) -> bool:
    """Return whether one of the entries is packed."""
    return PackedEntry in set(map(type, entries))


def unpacked_all(items: Sequence[bytes | PackedEntry]) -> list[bytes]:
    """Return the normal views of a list: bytes as they are, packed entries unpacked. Where all have
    one dictionary, nothing of it runs in Python per entry."""
    if set(map(type, items)) == {PackedEntry} and not any(map(_NORMAL, items)):
        dictionaries: set[ValueDictionary] = set(map(_DICTIONARY, items))
        if len(dictionaries) == 1:
            with suppress(DamagedFrame):  # told below, with the name of the entry
                return dictionaries.pop().unpack_all(map(_PACKED, items))
    return [item if isinstance(item, bytes) else item.shown() for item in items]
