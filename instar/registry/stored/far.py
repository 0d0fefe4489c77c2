"""Stored objects whose bytes are elsewhere: in the store's file, or in memory of other processes.

Such an entry knows its key, revision and labels, where its bytes are (``storage/values.py``) and
nothing more; who reads it gets a ``Held`` one for itself, which is gone when the reader is.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.registry.stored.entry import Entry, Held, Unreadable, ingest
from instar.registry.stored.failures import as_api_error
from instar.storage.store import Record, Seal, StoreError
from instar.storage.values import Values

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
        self._kinds: dict[tuple[str, Seal | None], Kind] = {}
        self._sizes: dict[int, int] = {}

    def of_record(self, record: Record, suffix: str) -> Far:
        held = Held(record.value, record.revision, suffix)
        try:
            api_version = held.api_version
        except Unreadable:
            api_version = ""
        return self._far(record, suffix, api_version)

    def of_held(self, held: Held, record: Record) -> Far:
        """The entry of what was just written here; what the writer knows is kept."""
        far = self._far(record, held.suffix, held.api_version)
        far.know(held.known_labels, held.token)
        return far

    def _far(self, record: Record, suffix: str, api_version: str) -> Far:
        kind = self._kinds.get((api_version, record.seal))
        if kind is None:
            kind = Kind(self._values, api_version, record.seal)
            if len(self._kinds) < _MOST_KINDS:
                self._kinds[api_version, record.seal] = kind
        size = len(record.value)
        if len(self._sizes) < _MOST_SIZES:
            size = self._sizes.setdefault(size, size)  # a number is as large as four references
        return Far(kind, self._values.keep(record), record.revision, suffix, size)
