"""List bodies: the JSON of many objects at one version, joined only while it is written.

``codec.py`` makes them, ``server/rest`` writes them. A list refers to bytes that the cache holds
anyway; where the requested version differs in ``apiVersion`` alone, the other ``apiVersion`` is
spliced in while the list is joined. A long list of lazy entries reads the bytes piece by piece
while it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from instar.base.errors import Expired
from instar.server.registry.stored.entry import CacheEntry

_ENTRIES_PER_READ = 100
STREAMED_BYTES = 1 << 20
"""Memory that a list counts for at most while it is read piece by piece."""


class Views(Sequence[bytes]):
    """The views of a list: object ``i`` is ``lead`` followed by ``bodies[i]`` without its first
    ``skip`` bytes."""

    __slots__ = ("_bodies", "_joined", "_keeps", "_lead", "_size", "_skip", "lasting")

    def __init__(
        self,
        bodies: list[bytes],
        lead: bytes = b"",
        skip: int = 0,
        size: int = -1,
        *,
        lasting: bool = False,
    ) -> None:
        """Pass ``size`` where it is known: summing it up for a million objects takes long."""
        self._size = size
        self.lasting = lasting
        """Whether only a write or another schema can change these views."""
        self._keeps = False
        self._joined: list[bytes] | None = None
        self._bodies = bodies
        self._lead = lead
        self._skip = skip

    def __len__(self) -> int:
        return len(self._bodies)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return list(self._made(self._bodies[index]))
        return self._lead + self._bodies[index][self._skip :]

    def __iter__(self) -> Iterator[bytes]:
        return self._made(self._bodies)

    @property
    def held(self) -> int:
        """Bytes that this list keeps in memory until it is written."""
        return self.size

    @property
    def size(self) -> int:
        """The sum of the objects' lengths."""
        if self._size < 0:
            self._size = self._summed()
        return self._size

    def _summed(self) -> int:
        changed = (len(self._lead) - self._skip) * len(self._bodies)
        return sum(map(len, self._bodies)) + changed

    def keep(self) -> None:
        """Keep the joined pieces once they are made, because other clients will request the same
        list."""
        self._keeps = True

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the objects joined by commas, in pieces of about ``size`` bytes."""
        if self._joined is not None:
            return iter(self._joined)
        return self._kept_pieces(size) if self._keeps else self._made_pieces(size)

    def _kept_pieces(self, size: int) -> Iterator[bytes]:
        made = []
        for piece in self._made_pieces(size):
            made.append(piece)
            yield piece
        self._joined = made

    def _made_pieces(self, size: int) -> Iterator[bytes]:
        many = len(self)
        if not many:
            return
        count = max(1, many * size // self.size)
        separator, skip = b"," + self._lead, self._skip
        for start in range(0, many, count):
            bodies = self._bodies_of(start, start + count)
            if skip:
                bodies = [body[skip:] for body in bodies]
            if start:
                bodies.insert(0, b"")  # makes the separator precede this piece, too
            elif self._lead:
                bodies[0] = self._lead + bodies[0]
            yield separator.join(bodies)

    def _bodies_of(self, start: int, stop: int) -> list[bytes]:
        return self._bodies[start:stop]

    def _made(self, bodies: list[bytes]) -> Iterator[bytes]:
        if not self._skip:
            return iter(bodies)
        lead, skip = self._lead, self._skip
        return (lead + body[skip:] for body in bodies)


Read = Callable[[Sequence[CacheEntry]], list[bytes]]


class LazyViews(Views):
    """Views of entries with their bytes on disk or in an arena: read piece by piece."""

    __slots__ = ("_entries", "_read")

    def __init__(self, entries: Sequence[CacheEntry], read: Read, size: int) -> None:
        """``size`` is the sum of the views' lengths."""
        super().__init__([], size=size)
        self._entries = entries
        self._read = read

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return self._read(self._entries[index])
        return self._read([self._entries[index]])[0]

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self._entries), _ENTRIES_PER_READ):
            yield from self._read(self._entries[start : start + _ENTRIES_PER_READ])

    @property
    def held(self) -> int:
        return min(self.size, STREAMED_BYTES)

    def _piece(self, start: int, stop: int) -> bytes:
        return b",".join(self._read(self._entries[start:stop]))

    def _made_pieces(self, size: int) -> Iterator[bytes]:
        """Raises ``Expired`` where the rest was compacted meanwhile."""
        if not self._entries:
            return
        left, many = self.size, len(self._entries)
        count = max(1, many * size // max(1, self.size))
        for start in range(0, many, count):
            stop = min(start + count, many)
            piece = self._piece(start, stop)
            left -= len(piece) - (stop - start) + 1
            if left < 0:
                break
            yield b"," + piece if start else piece
        if left:
            raise Expired("the objects of the list have changed while it was sent")
