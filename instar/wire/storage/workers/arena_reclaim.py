"""Reclaims shared memory: moves live values out of sparse segments and frees these segments.

The owner process calls ``Reclaimer`` from ``store_server.py``. The reclaimer moves the live values
of a sparse segment, announces each move to the workers, then sends a fence in their event streams.
A worker that has passed the fence has applied all earlier events and moves and no longer reads the
segment. When all have passed it, the segment is freed. While a worker is still loading, nothing
moves. The module works on keys and locations; ``arena.py`` holds the bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, Protocol, runtime_checkable

from instar.wire.storage.store import Ended, Page, Sink, Subscription
from instar.wire.storage.workers.arena import Arena, ArenaView, Segment

MOVED_AT_ONCE = 256
"""Values examined per step."""
_KEY_ERRORS = "surrogateescape"
"""Error handler for keys that are not UTF-8, which other clients of a cluster may write."""


class ArenaReference(bytes):
    """Reference to a value in the shared-memory arena; the bytes object itself is empty."""

    place: int

    @classmethod
    def at(cls, place: int) -> ArenaReference:
        made = cls()
        made.place = place
        return made


class Move(NamedTuple):
    """A value that was written at ``revision`` has a new location."""

    key: str
    revision: int
    place: int


class MoveListener(Protocol):
    def __call__(self, move: Move) -> None: ...


@runtime_checkable
class ArenaReadingStore(Protocol):
    """A worker's store: its events and ``state`` refer to values by location; ``range`` has
    values."""

    arena: ArenaView
    """Replaced by each ``state`` call; earlier locations stay valid until the next subscription."""
    moved: MoveListener
    """Called with every move."""

    async def state(self, revision: int = 0) -> Page:
        """Return all records, with ``ArenaReference`` for every value in shared memory."""
        ...


class LocationMap(Protocol):
    """Map of keys to locations in the owner process."""

    def move(self, key: str, place: int) -> Move | None:
        """Move the value if it is still at ``place`` and still needed."""
        ...


class OwnerRecords(LocationMap, Protocol):
    """The owner's view of all records, with ``ArenaReference`` for values in shared memory."""

    reached: Callable[[int], None]
    """Called with every revision before its events are sent to the workers."""

    def state(self, start: str, limit: int, revision: int) -> Page:
        """Return at most ``limit`` records from key ``start`` on as of ``revision`` (0: now; never
        later). Raises ``Compacted``, ``Unavailable``."""
        ...

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        """Subscribe as to a store."""
        ...


class EmptyLocationMap:
    """A ``LocationMap`` without any values."""

    def move(self, key: str, place: int) -> Move | None:
        return None


class Reclaimer:
    """The owner's values in shared memory, and the segments being reclaimed."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.fences = 0
        """Number of fences sent so far."""
        self._dropped: deque[int] = deque()
        self._leaving: Iterator[tuple[bytes, int]] | None = None
        self._segment: Segment | None = None
        self._fenced: deque[Segment] = deque()
        """Evacuated segments, oldest first, each with its own fence; the last has the newest."""
        self._needed: set[Segment] = set()
        """Segments that could not be evacuated, because this process still reads from them."""

    def put(self, key: str, value: bytes) -> int | None:
        return self.arena.put(key.encode(errors=_KEY_ERRORS), value)

    def drop(self, place: int) -> None:
        """Mark a value as unused. Thread-safe: an entry may be freed in any thread."""
        self._dropped.append(place)

    def settle(self, passed: Iterable[int]) -> None:
        """Free each segment once all workers have passed its fence."""
        for _ in range(len(self._dropped)):
            self.arena.drop(self._dropped.popleft())
        done = min(passed, default=self.fences) - (self.fences - len(self._fenced))
        for _ in range(done):
            self.arena.give_back(self._fenced.popleft())
        self._needed.clear()

    def leave(self, books: LocationMap) -> tuple[list[Move], bool]:
        """Do one step: return the moves, and whether more remains. May add a fence."""
        if self._leaving is None:
            self._segment = self.arena.segment_to_evacuate({*self._fenced, *self._needed})
            if self._segment is None:
                return [], False
            self._leaving = self.arena.records(self._segment)
        looked_at = list(islice(self._leaving, MOVED_AT_ONCE))
        moves = [books.move(key.decode(errors=_KEY_ERRORS), place) for key, place in looked_at]
        if not looked_at:
            self._left()
        return [move for move in moves if move is not None], True

    def _left(self) -> None:
        segment, self._segment, self._leaving = self._segment, None, None
        assert segment is not None
        for _ in range(len(self._dropped)):
            self.arena.drop(self._dropped.popleft())
        if segment.live:
            self._needed.add(segment)
            return
        self._fenced.append(segment)
        self.fences += 1
        self.arena.fence = self.fences
