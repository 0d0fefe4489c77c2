"""Lazy cache entry: keeps key, revision and labels in memory and reads the object from disk.

``backend.py`` makes such entries with ``--values disk``. Each reader gets its own
``InMemoryEntry``, which the reader drops after use. ``wire/storage/value_reader.py`` reads the
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from instar.server.registry.stored.entry import (
    CacheEntry,
    InMemoryEntry,
    UnreadableEntry,
    ingest,
)
from instar.server.registry.stored.object_bytes import (
    labels_of,
    labels_text,
    opening_of,
    revision_member,
    share_labels,
)
from instar.server.registry.stored.packing.packed_entry import PackedEntry
from instar.server.registry.stored.storage_errors import as_api_error
from instar.wire.storage.store import Record, Seal, StoreError
from instar.wire.storage.value_reader import RecentValues, Values

_MOST_KINDS = 4096
_MOST_SIZES = 16384
_MOST_TEXTS = 16384


class LazyEntryKind(NamedTuple):
    """What many lazy entries have in common, so that each holds one reference for it."""

    values: Values
    api_version: str
    seal: Seal | None


class LazyEntry(CacheEntry):
    """Entry with its bytes on disk. Kept small, because a cache may hold millions."""

    __slots__ = ("_kind", "_labels", "_size", "place")
    raw = None
    ready = b""
    normal = None

    def __init__(
        self, kind: LazyEntryKind, place: int, revision: int, suffix: str, size: int
    ) -> None:
        self._kind = kind
        self.place = place
        self.revision = revision
        self.suffix = suffix
        self._size = size
        self.token: object = None
        """Unlike that of an ``InMemoryEntry`` it is set only where the stored bytes themselves are
        normal."""
        self._labels: dict[str, str] | bytes | None = None
        """The JSON text of the labels, which is small, until they are parsed."""

    def load(self) -> InMemoryEntry:
        try:
            return self.of(self._kind.values.read(self.place))
        except StoreError as error:
            raise as_api_error(error) from error

    def of(self, value: bytes) -> InMemoryEntry:
        """Return the entry with the bytes that the caller has read."""
        held = ingest(Record("", value, self.revision, self._kind.seal), self.suffix)
        held.token = self.token
        return held

    @property
    def size(self) -> int:
        return self._size

    @property
    def api_version(self) -> str:
        return self._kind.api_version

    @property
    def seal(self) -> Seal | None:
        return self._kind.seal

    @property
    def labels(self) -> dict[str, str]:
        known = self._labels
        if isinstance(known, bytes):
            return labels_of(known) if known else share_labels(None)
        if known is None:
            known = self._labels = self.load().labels
        return known

    @property
    def values(self) -> Values:
        return self._kind.values

    @property
    def view_size(self) -> int:
        return self._size + len(revision_member(self.revision))

    def know(self, labels: dict[str, str] | bytes | None, token: object) -> None:
        self._labels, self.token = labels, token


def load_entries(entries: Sequence[CacheEntry]) -> list[InMemoryEntry]:
    """Return all entries with their bytes in memory, read from disk together; packed ones unpacked
    for the caller alone, because a list reads more than is worth keeping."""
    far = [entry for entry in entries if isinstance(entry, LazyEntry)]
    if not far:
        return [
            entry.fresh() if isinstance(entry, PackedEntry) else entry.load() for entry in entries
        ]
    try:
        values = iter(far[0].values.read_many([entry.place for entry in far]))
    except StoreError as error:
        raise as_api_error(error) from error
    return [
        entry.of(next(values)) if isinstance(entry, LazyEntry) else entry.load()
        for entry in entries
    ]


class LazyEntryFactory:
    """Makes entries that leave their bytes in ``values``."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._settled = values.values if isinstance(values, RecentValues) else values
        """Where records that were not just written are read: they need no place among the recent
        values."""
        self._kinds: dict[tuple[bytes, Seal | None], LazyEntryKind] = {}
        self._sizes: dict[int, int] = {}
        self._texts: dict[bytes, bytes] = {}

    def of_record(self, record: Record, suffix: str) -> LazyEntry:
        place, size = self._settled.keep(record), self._size(record.value)
        far = LazyEntry(self._kind(record), place, record.revision, suffix, size)
        text = labels_text(record.value)
        if text is not None:
            far.know(self._texts.get(text) or self._noted(text), None)
        return far

    def _noted(self, text: bytes) -> bytes:
        """Return one text for all entries with equal labels."""
        if len(self._texts) < _MOST_TEXTS:
            self._texts[text] = text
        return text

    def of_written(self, held: InMemoryEntry, record: Record) -> LazyEntry:
        """Return the entry of an object that this process just wrote, with what the writer
        knows."""
        place, size = self._values.keep(record), self._size(record.value)
        far = LazyEntry(self._kind(record), place, record.revision, held.suffix, size)
        far.know(held.known_labels, held.token)
        return far

    def _kind(self, record: Record) -> LazyEntryKind:
        opening = opening_of(record.value)
        kind = None if opening is None else self._kinds.get((opening, record.seal))
        if kind is not None:
            return kind
        held = InMemoryEntry(record.value, record.revision, "")
        try:
            kind = LazyEntryKind(self._values, held.api_version, record.seal)
        except UnreadableEntry:
            kind = LazyEntryKind(self._values, "", record.seal)
        if opening is not None and len(self._kinds) < _MOST_KINDS:
            self._kinds[opening, record.seal] = kind
        return kind

    def _size(self, value: bytes) -> int:
        """Return one int object for all entries of that size: an int is as large as four
        references."""
        size = len(value) - value.endswith(b"\n")
        known = self._sizes.get(size)
        if known is None:
            known = size
            if len(self._sizes) < _MOST_SIZES:
                self._sizes[size] = size
        return known
