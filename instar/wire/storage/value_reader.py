"""Reads a value by its storage location, so that caches can drop the bytes (``--values disk``).

Called by lazily loaded cache entries (``server/registry/stored/lazy_entry.py``). A location
("place") is a number that only the ``Values`` that returned it can resolve. The module works on
bytes, which the registry decodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from instar.wire.storage.store import Record, StoreError

_CACHED_BYTES = 8 << 20


class ValueGone(StoreError):
    """The value is no longer stored: its key has a newer value, and history was compacted."""

    def __init__(self, place: int) -> None:
        super().__init__(f"the value at {place} is not kept any more")
        self.place = place


class Values(Protocol):
    """Reader of values by location. Called from the event loop and threads, so reads are quick."""

    def keep(self, record: Record) -> int:
        """Return the location of a record that a follower has just received."""
        ...

    def read(self, place: int) -> bytes:
        """Return the value as committed. Raises ``ValueGone`` or another ``StoreError``."""
        ...

    def read_many(self, places: Sequence[int]) -> list[bytes]:
        """Return the values in the order of ``places``. Raises like ``read``."""
        ...


class ValuesNotReadable(StoreError):
    """The store cannot read values by location."""

    def __init__(self) -> None:
        super().__init__(
            "values are kept on disk by a SQLite file alone: --values disk needs "
            "--storage sqlite:PATH"
        )


@runtime_checkable
class ValueReader(Protocol):
    """A store with values that can be read again by location."""

    def values(self) -> Values:
        """Return the reader. Raises ``StoreError`` where values cannot be read by location."""
        ...


class RecentValues:
    """``Values`` with the latest ones cached, because watchers and the writer read what was just
    written."""

    def __init__(self, values: Values, most_bytes: int = _CACHED_BYTES) -> None:
        self.values = values
        self._room = most_bytes
        self._kept: dict[int, bytes] = {}
        self._order: deque[int] = deque()

    def keep(self, record: Record) -> int:
        place = self.values.keep(record)
        kept, value = self._kept, record.value
        self._room += len(kept.get(place, b"")) - len(value)
        if place not in kept:
            self._order.append(place)
        kept[place] = value
        while self._room < 0:
            self._room += len(kept.pop(self._order.popleft()))
        return place

    def read(self, place: int) -> bytes:
        return self._kept.get(place) or self.values.read(place)

    def read_many(self, places: Sequence[int]) -> list[bytes]:
        return self.values.read_many(places)
