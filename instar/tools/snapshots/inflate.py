"""Gzip stream that records the file offsets at which decompression can start again.

``archive.py`` reads through it. A file may consist of several gzip members. ``snapshot_writer.py``
begins a new member with each part, so that a part can be read without the preceding parts; a file
that was recompressed has one member and is always read from its beginning.
"""

from __future__ import annotations

import io
import zlib
from bisect import bisect_right
from typing import BinaryIO

from instar.base.limits import KIB

MAGIC = b"\x1f\x8b"
_CHUNK = 64 * KIB
_ENTRY_DISTANCE = 64 * KIB
"""Least distance between remembered entry points, because a file can consist of tiny members."""
_GZIP = 31
"""The argument by which zlib reads a gzip header."""
_FREE_MEMBERS = 10_000
"""A file with more members is refused unless each further member adds a KiB of content."""


class TruncatedGzip(Exception):
    """The file is truncated, or continues with bytes that are not gzip."""


class GzipStream(io.RawIOBase):
    """The uncompressed bytes of ``file`` from the member that begins at ``at``."""

    def __init__(self, file: BinaryIO, at: int = 0) -> None:
        file.seek(at)
        self._file = file
        self._engine = zlib.decompressobj(_GZIP)
        self._waiting = b""
        self._made = self._members = 0
        self.entrances: list[tuple[int, int]] = [(0, at)]
        """Entry points: (offset in the uncompressed stream, offset in the file) of members."""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: io.BufferedWriter | bytearray | memoryview) -> int:  # type: ignore[override]
        room = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        while True:
            if self._engine.eof and not self._next_member():
                return 0
            if not self._waiting:
                self._waiting = self._file.read(_CHUNK)
                if not self._waiting:
                    raise TruncatedGzip("it ends in the middle")
            try:
                made = self._engine.decompress(self._waiting, len(room))
            except zlib.error as error:
                raise TruncatedGzip(f"it is damaged: {error}") from None
            self._waiting = self._engine.unconsumed_tail
            if made:
                room[: len(made)] = made
                self._made += len(made)
                return len(made)

    def _next_member(self) -> bool:
        rest = self._engine.unused_data or self._file.read(_CHUNK)
        while rest and not rest.lstrip(b"\0"):
            rest = self._file.read(_CHUNK)  # padding with zeros is allowed
        if not rest:
            return False
        self._members += 1
        if self._members > _FREE_MEMBERS + self._made // KIB:
            raise TruncatedGzip("it is made of too many pieces that hold nothing")
        if self._made - self.entrances[-1][0] >= _ENTRY_DISTANCE:
            self.entrances.append((self._made, self._file.tell() - len(rest)))
        self._engine = zlib.decompressobj(_GZIP)
        self._waiting = rest
        return True


def enter(
    file: BinaryIO, entrances: list[tuple[int, int]], position: int
) -> io.BufferedReader[GzipStream]:
    """Open the uncompressed stream at a position, from the last recorded offset before it. Raises
    ``TruncatedGzip``.
    """
    found = bisect_right(entrances, (position, 1 << 62)) - 1
    start, at = entrances[found]
    stream = io.BufferedReader(GzipStream(file, at), _CHUNK)
    skip(stream, position - start)
    return stream


def skip(stream: BinaryIO, count: int) -> None:
    """Read past ``count`` bytes. Raises ``TruncatedGzip`` at an early end."""
    while count > 0:
        passed = len(stream.read(min(count, _CHUNK)))
        if not passed:
            raise TruncatedGzip("it ends in the middle")
        count -= passed
