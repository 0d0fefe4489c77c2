"""Shared-memory arena of values: written by the first process, read by all workers.

Used by ``worker_store.py`` and the cache entries in shared memory
(``server/registry/stored/shared_entry.py``). Values are appended to segments and never changed; a
location (a number) says where a value is. ``arena_reclaim.py`` moves values out of sparse segments
and returns their memory once all workers have confirmed. A worker that has not confirmed detects by
a counter in shared memory that a value it just read may be overwritten.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from struct import Struct

from instar.wire.storage.value_reader import ValueGone

SEGMENT = 1 << 24
"""Segment size in bytes; also the upper limit of an offset or length."""
SLACK = 0.5
"""Tolerated unused bytes as a fraction of the live ones (plus one segment)."""
LARGEST = SEGMENT // 2
"""Largest value that the arena accepts, in bytes."""

_OPENING = mmap.PAGESIZE
"""Bytes before the first segment, which hold the shared fence counter."""
_BITS = 24
_LOW = (1 << _BITS) - 1
_HEAD = Struct("<II")
"""Record header: key length and value length. The key and its length again follow."""
_KEY = Struct("<I")


def make_file() -> int:
    """Create an anonymous file, which is freed when the last process closes it."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("instar-values")
    else:
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    os.ftruncate(file, _OPENING)
    return file


class ArenaView:
    """Read-only view of another process's arena."""

    _access = mmap.ACCESS_READ

    def __init__(self, file: int) -> None:
        """Map ``file``, which stays the caller's to close."""
        self.file = file
        self.fence = 0
        """The last fence up to which this process has dropped every moved location."""
        self._opening = mmap.mmap(self.file, _OPENING, access=self._access)
        self._words = memoryview(self._opening).cast("Q")
        self._segments: list[mmap.mmap] = []
        self._views: list[memoryview] = []

    def read(self, place: int, fence: int) -> bytes:
        """Return the value; ``fence`` is that of the time the location was looked up. Raises
        ``ValueGone`` if the memory may have been reused since: look the location up again."""
        start = place >> _BITS & _LOW
        try:
            value = self._segments[place >> 2 * _BITS][start : start + (place & _LOW)]
        except IndexError:
            self._map_more(place)
            return self.read(place, fence)
        if self._words[0] > fence:
            raise ValueGone(place)
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
            raise ValueGone(places[0])
        return values

    def join(self, separator: bytes, places: Sequence[int], fence: int) -> bytes:
        """Return the values joined by ``separator``, copied once."""
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
            raise ValueGone(places[0])
        return joined

    def close(self) -> None:
        for view in (self._words, *self._views):
            view.release()
        for mapped in (self._opening, *self._segments):
            mapped.close()
        self._segments = []

    def _map_more(self, place: int) -> None:
        """Map segments that the owner has added since. Raises ``ValueGone`` if there are none."""
        there = (os.fstat(self.file).st_size - _OPENING) // SEGMENT
        if place >> 2 * _BITS >= there:
            raise ValueGone(place)
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
    """Return the total length. Raises ``TypeError`` if an item is not a location."""
    return sum(map(_LOW.__and__, places))


class Segment:
    __slots__ = ("filled", "live", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.filled = 0
        self.live = 0
        """Bytes in use, headers and keys included."""


class Arena(ArenaView):
    """The writable arena of the owner process."""

    _access = mmap.ACCESS_WRITE

    def __init__(self, file: int) -> None:
        super().__init__(file)
        self.live = 0
        self.used = 0
        """Bytes written to segments, in use or not."""
        self._known: list[Segment] = []
        self._empty: list[Segment] = []
        self._filling: Segment | None = None

    def put(self, key: bytes, value: bytes) -> int | None:
        """Store a value and return its location; None if it is too large."""
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
        """Return the bytes written beyond the tolerated amount."""
        return self.used - self.live * (1 + SLACK) - SEGMENT

    def drop(self, place: int) -> None:
        """Mark a value as unused; workers may still read it until they learn that."""
        segment = self._known[place >> 2 * _BITS]
        start = (place >> _BITS & _LOW) - _KEY.size
        (key,) = _KEY.unpack_from(self._segments[segment.number], start)
        self._count(segment, -(_HEAD.size + key + _KEY.size + (place & _LOW)))

    def _count(self, segment: Segment, size: int) -> None:
        segment.live += size
        self.live += size

    def segment_to_evacuate(self, others: Collection[Segment]) -> Segment | None:
        """Return the sparsest segment to evacuate, if too much is unused; none of ``others``."""
        full = [item for item in self._known if item.filled and item is not self._filling]
        left = [item for item in full if item not in others]
        least = min(left, key=lambda item: item.live / item.filled, default=None)
        if least is None or not least.live:
            return least
        leaving = sum(item.filled for item in others)
        return least if self.excess > leaving else None

    def records(self, segment: Segment) -> Iterator[tuple[bytes, int]]:
        """Yield every key stored in the segment with its location, in use or not."""
        mapped, at = self._segments[segment.number], 0
        while at < segment.filled:
            key, value = _HEAD.unpack_from(mapped, at)
            start = at + _HEAD.size + key + _KEY.size
            place = segment.number << 2 * _BITS | start << _BITS | value
            yield mapped[at + _HEAD.size : start - _KEY.size], place
            at = start + value

    def give_back(self, segment: Segment) -> None:
        """Return a segment's memory. The counter is incremented first, so that late readers
        notice."""
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
