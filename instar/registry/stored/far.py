"""Stored objects whose bytes are elsewhere: in the store's file, or in memory of other processes.

Such an entry knows its key, revision and labels, where its bytes are (``storage/values.py``) and
nothing more; who reads it gets a ``Held`` one for itself, which is gone when the reader is.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.registry.stored.entry import Entry, Held, Unreadable, ingest, opening_of
from instar.registry.stored.failures import as_api_error
from instar.storage.store import Record, Seal, StoreError
from instar.storage.values import Recent, Values

_MOST_KINDS = 4096
_MOST_SIZES = 16384


class Kind(NamedTuple):
    """What many entries have in common: one for all of them."""

    values: Values
    api_version: str
    seal: Seal | None


class Far(Entry):
    """Small, because there may be millions."""

    __slots__ = ("_kind", "_labels", "_size", "place")
    raw = None
    ready = b""
    normal = None

    def __init__(self, kind: Kind, place: int, revision: int, suffix: str, size: int) -> None:
        self._kind = kind
        self.place = place
        self.revision = revision
        self.suffix = suffix
        self._size = size
        self.token: object = None
        """Unlike a ``Held`` one's it is there only where the view *is* normal as it lies."""
        self._labels: dict[str, str] | None = None

    def near(self) -> Held:
        try:
            return self.of(self._kind.values.read(self.place))
        except StoreError as error:
            raise as_api_error(error) from error

    def of(self, value: bytes) -> Held:
        """The entry with its bytes, for whoever has read them."""
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
        if self._labels is None:
            self._labels = self.near().labels
        return self._labels

    def know(self, labels: dict[str, str] | None, token: object) -> None:
        self._labels, self.token = labels, token


class Distance:
    """Makes entries that leave their bytes in ``values``."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._settled = values.values if isinstance(values, Recent) else values
        """What is not of just now need not be at hand."""
        self._kinds: dict[tuple[bytes, Seal | None], Kind] = {}
        self._sizes: dict[int, int] = {}

    def of_record(self, record: Record, suffix: str) -> Far:
        value, place = record.value, self._settled.keep(record)
        return Far(self._kind(record), place, record.revision, suffix, self._size(len(value)))

    def of_held(self, held: Held, record: Record) -> Far:
        """The entry of what was just written here; what the writer knows is kept."""
        place, size = self._values.keep(record), self._size(len(record.value))
        far = Far(self._kind(record), place, record.revision, held.suffix, size)
        far.know(held.known_labels, held.token)
        return far

    def _kind(self, record: Record) -> Kind:
        opening = opening_of(record.value)
        kind = None if opening is None else self._kinds.get((opening, record.seal))
        if kind is not None:
            return kind
        held = Held(record.value, record.revision, "")
        try:
            kind = Kind(self._values, held.api_version, record.seal)
        except Unreadable:
            kind = Kind(self._values, "", record.seal)
        if opening is not None and len(self._kinds) < _MOST_KINDS:
            self._kinds[opening, record.seal] = kind
        return kind

    def _size(self, size: int) -> int:
        """One number for all of that size: it is as large as four references."""
        known = self._sizes.get(size)
        if known is None:
            known = size
            if len(self._sizes) < _MOST_SIZES:
                self._sizes[size] = size
        return known
