"""Values in memory that several processes share: written by one, read by all, there once.

Values are appended to segments and never changed; a place (a number) says where one lies. A segment
of which little is in use is left: the rest of it is put elsewhere, and when everybody who might
still read the old places has said so (``arena_reclaim.py``), its memory goes back to the system.
How often that has happened stands in shared memory, too: who has not said so learns that what it
has read may be anybody's, and does not use it. Knows bytes under keys.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from struct import Struct

from instar.wire.storage.value_reader import Gone

SEGMENT = 1 << 24
"""Bytes; also the most an offset or a length can say."""
SLACK = 0.5
"""Of what is in use, that may be unused besides (and a segment)."""
LARGEST = SEGMENT // 2
"""Of a value that finds room here."""

_OPENING = mmap.PAGESIZE
"""Before the first segment, for the one number that all read."""
_BITS = 24
_LOW = (1 << _BITS) - 1
_HEAD = Struct("<II")
"""Before each value: how long its key and it are; the key; and again how long that is."""
_KEY = Struct("<I")


def make_file() -> int:
    """Nameless: when the last process that has it open is gone, it is."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("instar-values")
    else:
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    os.ftruncate(file, _OPENING)
    return file


class ArenaView:
    """Reads what another process keeps."""

    _access = mmap.ACCESS_READ

    def __init__(self, file: int) -> None:
        """The file stays the caller's."""
        self.file = file
        self.fence = 0
        """How many times this process has let go of every place it was told to."""
        self._opening = mmap.mmap(self.file, _OPENING, access=self._access)
        self._words = memoryview(self._opening).cast("Q")
        self._segments: list[mmap.mmap] = []
        self._views: list[memoryview] = []

    def read(self, place: int, fence: int) -> bytes:
        """The value; ``fence`` is what it was before the place was looked up. Raises ``Gone``
        where the place may have been used again since: look it up again, if that helps."""
        start = place >> _BITS & _LOW
        try:
            value = self._segments[place >> 2 * _BITS][start : start + (place & _LOW)]
        except IndexError:
            self._map_more(place)
            return self.read(place, fence)
        if self._words[0] > fence:
            raise Gone(place)
        return value

    def read_many(self, places: Sequence[int], fence: int) -> list[bytes]:
        segments = self._segments
        try:
            values = [
                segments[place >> 2 * _BITS][
                    (start := place >> _BITS & _LOW) : start + (place & _LOW)
                ]
                for place in places
            ]
        except IndexError:
            self._map_more(max(places))
            return self.read_many(places, fence)
        if self._words[0] > fence:
            raise Gone(places[0])
        return values

    def join(self, separator: bytes, places: Sequence[int], fence: int) -> bytes:
        """The values with something between them, copied once."""
        views = self._views
        try:
            parts = [
                views[place >> 2 * _BITS][(start := place >> _BITS & _LOW) : start + (place & _LOW)]
                for place in places
            ]
        except IndexError:
            self._map_more(max(places))
            return self.join(separator, places, fence)
        joined = separator.join(parts)
        if self._words[0] > fence:
            raise Gone(places[0])
        return joined

    def close(self) -> None:
        for view in (self._words, *self._views):
            view.release()
        for mapped in (self._opening, *self._segments):
            mapped.close()
        self._segments = []

    def _map_more(self, place: int) -> None:
        """The owner has gone on since. Raises ``Gone`` where it has not."""
        there = (os.fstat(self.file).st_size - _OPENING) // SEGMENT
        if place >> 2 * _BITS >= there:
            raise Gone(place)
        for _ in range(len(self._segments), there):
            self._map_segment()

    def _map_segment(self) -> None:
        offset = _OPENING + len(self._segments) * SEGMENT
        mapped = mmap.mmap(self.file, SEGMENT, access=self._access, offset=offset)
        self._segments.append(mapped)
        self._views.append(memoryview(mapped))


def length_at(place: int) -> int:
    return place & _LOW


def length_of_all(places: Iterable[int]) -> int:
    """Raises ``TypeError`` where one is none."""
    return sum(map(_LOW.__and__, places))


class Segment:
    __slots__ = ("filled", "live", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.filled = 0
        self.live = 0
        """Bytes that are in use, heads and keys included."""


class Arena(ArenaView):
    """The one that writes."""

    _access = mmap.ACCESS_WRITE

    def __init__(self, file: int) -> None:
        super().__init__(file)
        self.live = 0
        self.used = 0
        """Bytes that are filled, in use or not."""
        self._known: list[Segment] = []
        self._empty: list[Segment] = []
        self._filling: Segment | None = None

    def put(self, key: bytes, value: bytes) -> int | None:
        """Keep a value; None where there is no room for one of its size."""
        if len(value) > LARGEST or len(key) > LARGEST // 2:
            return None
        head = _HEAD.pack(len(key), len(value))
        record = b"".join((head, key, _KEY.pack(len(key)), value))
        segment = self._filling
        if segment is None or segment.filled + len(record) > SEGMENT:
            segment = self._filling = self._next_segment()
        start = segment.filled
        self._segments[segment.number][start : start + len(record)] = record
        segment.filled += len(record)
        self.used += len(record)
        self._count(segment, len(record))
        start += len(record) - len(value)
        return segment.number << 2 * _BITS | start << _BITS | len(value)

    @property
    def excess(self) -> float:
        """Bytes that are filled beyond what is tolerated."""
        return self.used - self.live * (1 + SLACK) - SEGMENT

    def drop(self, place: int) -> None:
        """Nobody needs it any more, but for those who do not know yet."""
        segment = self._known[place >> 2 * _BITS]
        start = (place >> _BITS & _LOW) - _KEY.size
        (key,) = _KEY.unpack_from(self._segments[segment.number], start)
        self._count(segment, -(_HEAD.size + key + _KEY.size + (place & _LOW)))

    def _count(self, segment: Segment, size: int) -> None:
        segment.live += size
        self.live += size

    def to_leave(self, others: Collection[Segment]) -> Segment | None:
        """The segment to be left next, if too much is unused; not one of ``others``."""
        full = [item for item in self._known if item.filled and item is not self._filling]
        left = [item for item in full if item not in others]
        least = min(left, key=lambda item: item.live / item.filled, default=None)
        if least is None or not least.live:
            return least
        leaving = sum(item.filled for item in others)
        return least if self.excess > leaving else None

    def records(self, segment: Segment) -> Iterator[tuple[bytes, int]]:
        """Every key that was put into it, with its place, in use or not."""
        mapped, at = self._segments[segment.number], 0
        while at < segment.filled:
            key, value = _HEAD.unpack_from(mapped, at)
            start = at + _HEAD.size + key + _KEY.size
            place = segment.number << 2 * _BITS | start << _BITS | value
            yield mapped[at + _HEAD.size : start - _KEY.size], place
            at = start + value

    def give_back(self, segment: Segment) -> None:
        """Everybody is done with it. Who is not will notice: the number comes first."""
        self._words[0] += 1
        self.used -= segment.filled
        segment.filled = 0
        if hasattr(mmap, "MADV_REMOVE"):
            self._segments[segment.number].madvise(mmap.MADV_REMOVE)
        self._empty.append(segment)

    def _next_segment(self) -> Segment:
        if self._empty:
            return self._empty.pop()
        segment = Segment(len(self._known))
        os.ftruncate(self.file, _OPENING + (len(self._known) + 1) * SEGMENT)
        self._known.append(segment)
        self._map_segment()
        return segment
