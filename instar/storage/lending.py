"""How long a lent value stays: as long as its owner keeps it and until all borrowers have gone on.

The owner says when it has dropped a value. Its place is used again only after every borrower has
told that it has seen what was written by then: it has another place, or bytes of its own. Knows
places and revisions, not what is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from instar.storage.arena import Arena, ArenaView
from instar.storage.store import Page


class Elsewhere(bytes):
    """Stands for a value that lies at ``place``; of itself it is empty."""

    place: int

    @classmethod
    def at(cls, place: int) -> Elsewhere:
        made = cls()
        made.place = place
        return made


@runtime_checkable
class Borrowing(Protocol):
    """A store that tells places: its events and ``state`` do; ``range`` has values."""

    arena: ArenaView

    async def state(self, revision: int = 0) -> Page:
        """``range`` of everything, with ``Elsewhere`` for every value that is lent."""
        ...


class _Dropped(NamedTuple):
    revision: int
    """The store's when the owner had dropped them."""
    places: list[int]
    size: int


class Loans:
    """The owner's arena, and what it has dropped that others may still read."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.unsettled = 0
        """Bytes that wait for somebody to go on."""
        self._dropped: deque[int] = deque()
        self._waiting: deque[_Dropped] = deque()

    def put(self, value: bytes, cut: int) -> int | None:
        return self.arena.put(value, cut)

    def drop(self, place: int) -> None:
        """From any thread: entries are dropped wherever their last reader ends."""
        self._dropped.append(place)

    def settle(self, revision: int, seen: Iterable[int]) -> None:
        """Now, at ``revision``, with borrowers who have seen as much as ``seen``."""
        if self._dropped:
            places = [self._dropped.popleft() for _ in range(len(self._dropped))]
            size = sum(map(self.arena.length, places))
            self._waiting.append(_Dropped(revision, places, size))
            self.unsettled += size
        least = min(seen, default=revision)
        while self._waiting and self._waiting[0].revision <= least:
            done = self._waiting.popleft()
            self.unsettled -= done.size
            for place in done.places:
                self.arena.forget(place)
