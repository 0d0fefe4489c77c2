"""Reads frames out of bytes: the greeting, whole frames, and header blocks of several frames.

Each ``connection.py`` has a reader and gets what it found through ``FrameReceiver``. A read ends
after some frames, so that other connections get their turn however many a client sends at once.
"""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import Protocol

from instar.base import limits
from instar.base.http2 import frames
from instar.base.http2.frames import ProtocolError
from instar.server.http.http2.flood import FloodMeter
from instar.server.http.http2.settings import MOST_FRAME

_AT_ONCE = 256
"""Frames of one read."""


class FrameReceiver(Protocol):
    """The connection that a reader belongs to."""

    def take_headers(self, number: int, block: bytes, last: bool) -> None:
        """A whole header block."""
        ...

    def take_frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        """A frame without headers."""
        ...


class Http2FrameReader:
    """The part of a connection's data that is no whole frame yet."""

    __slots__ = ("_block", "_greeted", "_meter", "_owner", "_partial", "_preface", "deadline")

    def __init__(self, owner: FrameReceiver, meter: FloodMeter) -> None:
        self._owner, self._meter = owner, meter
        self._partial = b""
        self._preface = self._greeted = False
        self._block: tuple[int, int, bytes] | None = None
        """Stream, flags and beginning of a header block that continues in the next frame."""
        self.deadline = inf
        """The time by which an unfinished frame or header block must be complete."""

    def feed(self, data: bytes) -> bytes:
        """Read frames. Returns the data that is left for another turn. Raises ``ProtocolError``."""
        if self._partial:
            data, self._partial = self._partial + data, b""
        at, size, left = self._after_preface(data), len(data), _AT_ONCE
        while self._preface and size - at >= frames.HEAD_SIZE:
            high, low, kind, flags, number = frames.HEAD.unpack_from(data, at)
            length = high << 16 | low
            if length > MOST_FRAME:
                raise ProtocolError(frames.FRAME_SIZE_ERROR, f"a frame of {length} bytes")
            end = at + frames.HEAD_SIZE + length
            if end > size:
                break
            if not left:
                return data[at:]
            left -= 1
            self._take(kind, flags, number & frames.MOST_STREAM, data[at + 9 : end])
            at = end
        self._partial = data[at:]
        self._keep_time()
        return b""

    def _keep_time(self) -> None:
        if not self._partial and self._block is None:
            self.deadline = inf
        elif self.deadline == inf:
            self.deadline = monotonic() + limits.HEAD_SECONDS

    def _after_preface(self, data: bytes) -> int:
        """Return where frames begin."""
        if self._preface:
            return 0
        if not frames.PREFACE.startswith(data[: len(frames.PREFACE)]):
            raise ProtocolError(frames.PROTOCOL_ERROR, "no preface of HTTP/2")
        if len(data) < len(frames.PREFACE):
            return 0
        self._preface = True
        return len(frames.PREFACE)

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._block is not None and kind != frames.CONTINUATION:
            raise ProtocolError(frames.PROTOCOL_ERROR, "headers that are interrupted")
        if not self._greeted and (kind != frames.SETTINGS or flags & frames.ACK):
            raise ProtocolError(frames.PROTOCOL_ERROR, "a greeting without settings")
        self._greeted = True
        if kind == frames.HEADERS:
            self._take_block(number, flags, frames.strip_padding(payload, flags))
        elif kind == frames.CONTINUATION:
            self._take_continuation(number, flags, payload)
        else:
            self._owner.take_frame(kind, flags, number, payload)

    def _take_block(self, number: int, flags: int, block: bytes) -> None:
        if len(block) > limits.MAX_HEAD:
            raise ProtocolError(frames.CALM_DOWN, "headers without end")
        if flags & frames.END_HEADERS:
            self._owner.take_headers(number, block, bool(flags & frames.END_STREAM))
        else:
            self._block = number, flags, block

    def _take_continuation(self, number: int, flags: int, payload: bytes) -> None:
        begun, self._block = self._block, None
        if begun is None or begun[0] != number:
            raise ProtocolError(frames.PROTOCOL_ERROR, "headers that go on without a beginning")
        self._meter.spend()
        self._take_block(number, begun[1] | flags & frames.END_HEADERS, begun[2] + payload)
