"""Values in memory that several processes share: written by one, read by all, there once.

A value lies in a segment; a table says where, and may say another place a moment later: where
little of a segment is in use, the rest of it moves together with others' and its memory goes back
to the system. So a place (a number) stays good while its value is kept, and the number alone tells
whether it still is: nobody is ever shown another value's bytes. Knows bytes, and one cut in them.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from array import array
from typing import NamedTuple

from instar.storage.values import Gone

SEGMENT = 1 << 24
"""Bytes; also the most an offset can say."""
LARGEST = SEGMENT // 2
"""Of a value that finds room here."""
SLACK = 0.5
"""Of what is in use, that may be unused besides (and a segment)."""
MOVED_AT_ONCE = 256
"""Values, in one step of a removal."""

_WORDS = 4
"""Of a slot: generation and length; segment's generation, segment and offset; where the value is
cut; unused."""
_SLOTS = 1 << 15
_CHUNK = _SLOTS * _WORDS * 8
_LOW = (1 << 32) - 1
_OFFSET = SEGMENT - 1
_NUMBER = (1 << 24) - 1
_GENERATIONS = (1 << 31) - 1
"""Of a slot, before they come again."""
_TURNS = 1 << 15
"""Generations of a segment before they come again."""


class Files(NamedTuple):
    """Both parts of an arena, as file descriptors."""

    table: int
    segments: int


def make_files() -> Files:
    """Nameless: when the last process that has them open is gone, they are."""
    return Files(_nameless("instar-table"), _nameless("instar-values"))


def _nameless(name: str) -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class ArenaView:
    """Reads what another process keeps."""

    _access = mmap.ACCESS_READ

    def __init__(self, files: Files) -> None:
        self._files = Files(os.dup(files.table), os.dup(files.segments))
        self._chunks: list[memoryview[int]] = []
        self._segments: list[mmap.mmap] = []
        self._maps: list[mmap.mmap] = []

    def read(self, place: int) -> bytes:
        """The value, with what was put into it. Raises ``Gone``."""
        slot = place & _LOW
        while True:
            try:
                words, at = self._chunks[slot // _SLOTS], slot % _SLOTS * _WORDS
                head, where = words[at], words[at + 1]
                if head >> 32 != place >> 32:
                    raise Gone(place)
                start = where & _OFFSET
                value = self._segments[where >> 24 & _NUMBER][start : start + (head & _LOW)]
            except IndexError:
                self._map_more(place)
                continue
            # Moved or forgotten while it was copied? Then these may be anybody's bytes.
            if words[at + 1] == where and words[at] == head:
                return value

    def cut(self, place: int) -> int:
        """Where something was put into the value; -1: nothing was."""
        slot = place & _LOW
        words, at = self._chunks[slot // _SLOTS], slot % _SLOTS * _WORDS
        cut, head = words[at + 2], words[at]
        if head >> 32 != place >> 32:
            raise Gone(place)
        return cut - 1

    def length(self, place: int) -> int:
        slot = place & _LOW
        try:
            return self._chunks[slot // _SLOTS][slot % _SLOTS * _WORDS] & _LOW
        except IndexError:
            self._map_more(place)
            return self.length(place)

    def close(self) -> None:
        for chunk in self._chunks:
            chunk.release()
        for mapped in (*self._maps, *self._segments):
            mapped.close()
        for file in self._files:
            os.close(file)
        self._chunks, self._segments, self._maps = [], [], []

    def _map_more(self, place: int) -> None:
        """The owner has gone on since. Raises ``Gone`` where it has not."""
        before = len(self._chunks), len(self._segments)
        for _ in range(len(self._chunks), os.fstat(self._files.table).st_size // _CHUNK):
            self._map_chunk()
        for _ in range(len(self._segments), os.fstat(self._files.segments).st_size // SEGMENT):
            self._map_segment()
        if before == (len(self._chunks), len(self._segments)):
            raise Gone(place)

    def _map_chunk(self) -> None:
        offset = len(self._chunks) * _CHUNK
        mapped = mmap.mmap(self._files.table, _CHUNK, access=self._access, offset=offset)
        self._maps.append(mapped)
        self._chunks.append(memoryview(mapped).cast("Q"))

    def _map_segment(self) -> None:
        offset = len(self._segments) * SEGMENT
        self._segments.append(
            mmap.mmap(self._files.segments, SEGMENT, access=self._access, offset=offset)
        )


class Arena(ArenaView):
    """The one that writes."""

    _access = mmap.ACCESS_WRITE

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self.files = self._files
        self.live = 0
        """Bytes of values that are kept."""
        self._known: list[_Segment] = []
        self._empty: list[int] = []
        self._free: list[int] = []
        self._slots = 0
        self._filling: _Segment | None = None
        self._leaving: tuple[_Segment, int] | None = None
        """The segment that is being cleared, and how many of its slots are done."""

    @property
    def used(self) -> int:
        """Bytes of segments that are not empty; of the newest, what is filled."""
        return sum(segment.filled for segment in self._known)

    def put(self, value: bytes, cut: int = -1) -> int | None:
        """Keep a value; None where there is no room for one of its size."""
        if len(value) > LARGEST:
            return None
        slot = self._free.pop() if self._free else self._new_slot()
        words, at = self._chunks[slot // _SLOTS], slot % _SLOTS * _WORDS
        generation = words[at] >> 32
        words[at + 1] = self._written(value, slot)
        words[at + 2] = cut + 1
        words[at] = generation << 32 | len(value)
        self.live += len(value)
        return generation << 32 | slot

    def forget(self, place: int) -> None:
        """Who still refers to it learns that it is gone."""
        slot = place & _LOW
        words, at = self._chunks[slot // _SLOTS], slot % _SLOTS * _WORDS
        head, where = words[at], words[at + 1]
        if head >> 32 != place >> 32:
            return
        words[at] = ((head >> 32) + 1 & _GENERATIONS) << 32
        segment, length = self._known[where >> 24 & _NUMBER], head & _LOW
        segment.live -= length
        self.live -= length
        self._free.append(slot)
        if not segment.live and segment is not self._filling:
            self._give_back(segment)

    def tidy(self) -> bool:
        """One step of keeping unused memory within bounds; whether there is more to do."""
        if self._leaving is None:
            if self.used <= self.live * (1 + SLACK) + SEGMENT:
                return False
            full = (item for item in self._known if item.filled and item is not self._filling)
            least = min(full, key=lambda item: item.live / item.filled, default=None)
            if least is None:
                return False
            self._leaving = least, 0
        segment, done = self._leaving
        slots = segment.slots[done : done + MOVED_AT_ONCE]
        for slot in slots:
            self._move(slot, segment)
        self._leaving = (segment, done + len(slots)) if segment.filled and slots else None
        return True

    def _move(self, slot: int, segment: _Segment) -> None:
        words, at = self._chunks[slot // _SLOTS], slot % _SLOTS * _WORDS
        where, length = words[at + 1], words[at] & _LOW
        if where >> 24 != segment.name or not length:
            return  # it left long ago, or nobody keeps it
        start = where & _OFFSET
        words[at + 1] = self._written(self._segments[segment.number][start : start + length], slot)
        segment.live -= length
        if not segment.live:
            self._give_back(segment)

    def _written(self, value: bytes, slot: int) -> int:
        segment = self._filling
        if segment is None or segment.filled + len(value) > SEGMENT:
            segment = self._next_segment()
        start = segment.filled
        self._segments[segment.number][start : start + len(value)] = value
        segment.filled += len(value)
        segment.live += len(value)
        segment.slots.append(slot)
        return segment.name << 24 | start

    def _next_segment(self) -> _Segment:
        before, self._filling = self._filling, None
        if before is not None and not before.live:
            self._give_back(before)
        if self._empty:
            segment = self._known[self._empty.pop()]
        else:
            segment = _Segment(len(self._known))
            os.ftruncate(self._files.segments, (len(self._known) + 1) * SEGMENT)
            self._known.append(segment)
            self._map_segment()
        self._filling = segment
        return segment

    def _give_back(self, segment: _Segment) -> None:
        segment.turn = (segment.turn + 1) % _TURNS
        segment.filled = 0
        segment.slots = array("I")
        self._empty.append(segment.number)
        if hasattr(mmap, "MADV_REMOVE"):
            self._segments[segment.number].madvise(mmap.MADV_REMOVE)

    def _new_slot(self) -> int:
        if self._slots == len(self._chunks) * _SLOTS:
            os.ftruncate(self._files.table, (len(self._chunks) + 1) * _CHUNK)
            self._map_chunk()
        self._slots += 1
        return self._slots - 1


class _Segment:
    __slots__ = ("filled", "live", "number", "slots", "turn")

    def __init__(self, number: int) -> None:
        self.number = number
        self.turn = 0
        """How often it was emptied: part of its name, which no two contents share."""
        self.filled = 0
        self.live = 0
        self.slots = array("I")

    @property
    def name(self) -> int:
        return self.turn << 24 | self.number
