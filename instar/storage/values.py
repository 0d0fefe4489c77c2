"""Values by place: where a value can be read again, so that whoever knows its key need not hold it.

A place is a number that only its ``Values`` understands. Knows bytes, no Kubernetes object, and not
who keeps which places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from instar.storage.store import Record, StoreError


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
