"""Values that are lent: when they move, and when their memory may be used for others.

The owner of the store is also the owner of the arena. A segment that is hardly in use is left:
what others still need of it is put elsewhere, and they are told. Then comes a fence in their stream
of events: who has passed it has taken every event and every move before it, and reads nothing of
the segment any more. When all have said so it is given back. Who is loading has not even begun to
listen: until it does, nothing moves. Knows keys and places, not what is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, Protocol, runtime_checkable

from instar.wire.storage.store import Ended, Page, Sink, Subscription
from instar.wire.storage.workers.arena import Arena, ArenaView, Segment

MOVED_AT_ONCE = 256
"""Values looked at in one step."""
_NO_TEXT = "surrogateescape"
"""How a key that is none is kept in one: in a cluster others write, too."""


class Elsewhere(bytes):
    """Stands for a value that lies at ``place``; of itself it is empty."""

    place: int

    @classmethod
    def at(cls, place: int) -> Elsewhere:
        made = cls()
        made.place = place
        return made


class Move(NamedTuple):
    """The value of a key that was written at ``revision`` lies somewhere else now."""

    key: str
    revision: int
    place: int


class Moved(Protocol):
    def __call__(self, move: Move) -> None: ...


@runtime_checkable
class Borrowing(Protocol):
    """A store that tells places: its events and ``state`` do; ``range`` has values."""

    arena: ArenaView
    """Another one after each ``state``: places of before are good until somebody follows again."""
    moved: Moved
    """Called with every move."""

    async def state(self, revision: int = 0) -> Page:
        """``range`` of everything, with ``Elsewhere`` for every value that is lent."""
        ...


class Mover(Protocol):
    """Who knows which value is where, in the process that lends."""

    def move(self, key: str, place: int) -> Move | None:
        """Put the value elsewhere, if this is its place and somebody may still ask for it."""
        ...


class Books(Mover, Protocol):
    """And what there is, with ``Elsewhere`` for every value that is lent."""

    reached: Callable[[int], None]
    """Called with every revision that is seen here, before anybody else is told of it."""

    def state(self, start: str, limit: int, revision: int) -> Page:
        """What there was at ``revision`` (0: now; never later), from a key on, at most ``limit``
        records. Raises ``Compacted``, ``Unavailable``."""
        ...

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        """As of a store."""
        ...


class NothingLent:
    """Of which nothing can be moved."""

    def move(self, key: str, place: int) -> Move | None:
        return None


class Loans:
    """What the owner lends, and what is on its way back."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.fences = 0
        """So many were put up."""
        self._dropped: deque[int] = deque()
        self._leaving: Iterator[tuple[bytes, int]] | None = None
        self._segment: Segment | None = None
        self._fenced: deque[Segment] = deque()
        """Left, each with a fence of its own; the last one's is the newest."""
        self._needed: set[Segment] = set()
        """Could not be left: somebody here is still reading of it."""

    def put(self, key: str, value: bytes) -> int | None:
        return self.arena.put(key.encode(errors=_NO_TEXT), value)

    def drop(self, place: int) -> None:
        """From any thread: entries are dropped wherever their last reader ends."""
        self._dropped.append(place)

    def settle(self, passed: Iterable[int]) -> None:
        """Give back what is behind the fences that all others have passed."""
        for _ in range(len(self._dropped)):
            self.arena.drop(self._dropped.popleft())
        done = min(passed, default=self.fences) - (self.fences - len(self._fenced))
        for _ in range(done):
            self.arena.give_back(self._fenced.popleft())
        self._needed.clear()

    def leave(self, books: Mover) -> tuple[list[Move], bool]:
        """One step: what has moved, and whether there is more to do. A new fence may be up."""
        if self._leaving is None:
            self._segment = self.arena.to_leave({*self._fenced, *self._needed})
            if self._segment is None:
                return [], False
            self._leaving = self.arena.records(self._segment)
        looked_at = list(islice(self._leaving, MOVED_AT_ONCE))
        moves = [books.move(key.decode(errors=_NO_TEXT), place) for key, place in looked_at]
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
