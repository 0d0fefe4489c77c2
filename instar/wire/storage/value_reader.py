"""Values by place: where a value can be read again, so that whoever knows its key need not hold it.

A place is a number that only its ``Values`` understands. Knows bytes, no Kubernetes object, and not
who keeps which places.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from instar.wire.storage.store import Record, StoreError

_RECENT_BYTES = 8 << 20


class Gone(StoreError):
    """The value was forgotten: its key has a newer one, and history was compacted."""

    def __init__(self, place: int) -> None:
        super().__init__(f"the value at {place} is not kept any more")
        self.place = place


class Values(Protocol):
    """Read from the event loop and from threads, so reading takes what one look-up takes."""

    def keep(self, record: Record) -> int:
        """The place of a record that was handed to a follower just now."""
        ...

    def read(self, place: int) -> bytes:
        """The value as it was committed. Raises ``Gone``, or another ``StoreError``."""
        ...

    def read_many(self, places: Sequence[int]) -> list[bytes]:
        """In the order asked for. Raises the same."""
        ...


class NoShelf(StoreError):
    """Asked of a store that cannot give values by place."""

    def __init__(self) -> None:
        super().__init__(
            "values are kept on disk by a SQLite file alone: --values disk needs "
            "--storage sqlite:PATH"
        )


@runtime_checkable
class ValueReader(Protocol):
    """A store whose values can be read again by place."""

    def values(self) -> Values:
        """Raises ``StoreError`` where it cannot."""
        ...


class RecentValues:
    """Other values, of which the latest are at hand: what was just written is what watchers are
    told, and what its writer reads next."""

    def __init__(self, values: Values, most_bytes: int = _RECENT_BYTES) -> None:
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
