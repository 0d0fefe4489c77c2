"""Unpacks an answer's content as it arrives, never further than asked: a few bytes can be a bomb.

Knows compressed bytes only, not where they come from.
"""

from __future__ import annotations

import zlib

_MOST_STREAMS = 1000
"""Nobody packs an answer in more; half a million empty ones are an attack."""


class BrokenEncoding(Exception):
    """The bytes are not what the encoding says they are."""


class Unpacker:
    """One body's content coding. Several packed streams in a row are one content, as in Go."""

    def __init__(self, encoding: bytes) -> None:
        self._gzip = encoding == b"gzip"
        self._stream: zlib._Decompress | None = None
        self._streams = 0

    @property
    def between_streams(self) -> bool:
        """Whether what came so far is whole."""
        return self._stream is None

    def unpack(self, data: bytes, most_bytes: int) -> bytes:
        """At most so many bytes; what is beyond them is lost. Raises ``BrokenEncoding``."""
        pieces = []
        while data and most_bytes > 0:
            if self._stream is None:
                self._stream = zlib.decompressobj(self._window(data))
            try:
                piece = self._stream.decompress(data, most_bytes)
            except zlib.error as error:
                raise BrokenEncoding from error
            pieces.append(piece)
            most_bytes -= len(piece)
            data = b""
            if self._stream.eof:
                data, self._stream = self._stream.unused_data, None
                self._count_streams()
        return b"".join(pieces)

    def _count_streams(self) -> None:
        """Each stream costs a copy of all that follows it: many make a small answer long work."""
        self._streams += 1
        if self._streams > _MOST_STREAMS:
            raise BrokenEncoding

    def _window(self, data: bytes) -> int:
        """How zlib is told the format. "deflate" is zlib's by the book and bare by custom."""
        if self._gzip:
            return 16 + zlib.MAX_WBITS
        return zlib.MAX_WBITS if data[0] & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS


def unpacker_for(encoding: bytes) -> Unpacker | None:
    """None where the content is taken as it is: we asked for gzip and nothing else."""
    encoding = encoding.strip().lower()
    return Unpacker(encoding) if encoding in (b"gzip", b"deflate") else None
