"""Decompresses a response body as it arrives, up to a limit (protects from zip bombs).

Used by ``http1_response.py``.
"""

from __future__ import annotations

import zlib

_MOST_STREAMS = 1000
"""Limit of gzip members per body: real answers have one, an attack may have half a million."""


class BrokenEncoding(Exception):
    """The bytes do not match their content encoding."""


class Unpacker:
    """Decoder of one body. Consecutive compressed streams are one content, as in Go."""

    def __init__(self, encoding: bytes) -> None:
        self._gzip = encoding == b"gzip"
        self._stream: zlib._Decompress | None = None
        self._streams = 0

    @property
    def between_streams(self) -> bool:
        """Return whether the input so far is complete."""
        return self._stream is None

    def unpack(self, data: bytes, most_bytes: int) -> bytes:
        """Decompress at most ``most_bytes``; the rest is dropped. Raises ``BrokenEncoding``."""
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
        """Count streams: each costs a copy of all that follows it, so many would be quadratic
        work."""
        self._streams += 1
        if self._streams > _MOST_STREAMS:
            raise BrokenEncoding

    def _window(self, data: bytes) -> int:
        """Return zlib's wbits for the format; "deflate" is zlib by standard and raw by custom."""
        if self._gzip:
            return 16 + zlib.MAX_WBITS
        return zlib.MAX_WBITS if data[0] & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS


def unpacker_for(encoding: bytes) -> Unpacker | None:
    """Return a decoder, or None for other encodings: we request gzip only."""
    encoding = encoding.strip().lower()
    return Unpacker(encoding) if encoding in (b"gzip", b"deflate") else None
