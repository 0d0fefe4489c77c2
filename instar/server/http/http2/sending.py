"""Outgoing side of an HTTP/2 connection of the server: flow control, turns of streams, batching.

``connection.py`` has one and tells it what the client allows; ``stream.py`` writes to it. Frames of
one loop iteration are written together: an event for a hundred watches is one write. Control frames
go out at once, data as both windows and the client's speed allow, each stream a frame in turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from instar.base import limits
from instar.base.http2 import frames
from instar.base.http2.frames import ProtocolError
from instar.server.http.http2.flood import FloodMeter

_TOGETHER = 64 << 10
"""Bytes of frames that are written together at most, but for one frame."""
_MOST_PAYLOAD = 64 << 10
"""Largest payload sent to a client that allows more: others on the connection wait for it."""


class SendingStream(Protocol):
    """The part of a stream that concerns what waits to be sent."""

    number: int
    window: int
    """Bytes that the client accepts on this stream."""
    unsent: int
    """Bytes that wait for the client."""
    ends: bool
    """Whether the stream ends after them."""

    def hold(self, data: bytes) -> None: ...

    def take(self, size: int) -> bytes | memoryview: ...

    def drained(self) -> None:
        """Nothing waits any more."""
        ...

    def over(self) -> None:
        """The last frame of the stream was written."""
        ...


class Http2Sender:
    """The frames of one connection that are not written yet, and the data that waits."""

    __slots__ = (
        "_bytes",
        "_holding",
        "_initial",
        "_loop",
        "_meter",
        "_most_payload",
        "_parts",
        "_paused",
        "_pumping",
        "_scheduled",
        "_sendable",
        "_stalled",
        "_transport",
        "_window",
    )

    def __init__(self, transport: asyncio.Transport, meter: FloodMeter) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = transport
        self._meter = meter
        self._parts: list[bytes | memoryview] = []
        self._bytes = 0
        """Bytes of the parts, without the heads of data."""
        self._holding = False
        self._scheduled = False
        self._paused = False
        self._pumping = False
        self._most_payload = frames.MOST_PAYLOAD
        self._stalled = 0, 0.0
        """How many written bytes were unread when that last changed, and the time."""
        self._window = self._initial = frames.DEFAULT_WINDOW
        self._sendable: dict[SendingStream, None] = {}
        """Streams with data that their window lets through, in their order."""

    @property
    def initial_window(self) -> int:
        return self._initial

    # --- writing ---------------------------------------------------------------------------

    def hold(self) -> None:
        """Collect frames until ``flush``."""
        self._holding = True

    def flush(self) -> None:
        self._holding = self._scheduled = False
        if self._parts:
            self._write_out()

    def write(self, data: bytes | memoryview) -> None:
        """Write frames."""
        self._parts.append(data)
        self._bytes += len(data)
        if self._bytes > _TOGETHER:
            self._write_out()
        elif not (self._holding or self._scheduled):
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def _write_out(self) -> None:
        data = b"".join(self._parts)
        self._parts.clear()
        self._bytes = 0
        if self._transport is not None:
            self._transport.write(data)

    def answered(self) -> None:
        """The last frame of a response was written."""
        self._meter.answered()

    def headers(self, number: int, flags: int, block: bytes) -> None:
        """Write a header block, in several frames where it is longer than one."""
        most = frames.MOST_PAYLOAD
        if len(block) <= most:
            self.write(frames.frame(frames.HEADERS, flags | frames.END_HEADERS, number, block))
            return
        self.write(frames.frame(frames.HEADERS, flags, number, block[:most]))
        for begin in range(most, len(block), most):
            end = frames.END_HEADERS if begin + most >= len(block) else 0
            piece = block[begin : begin + most]
            self.write(frames.frame(frames.CONTINUATION, end, number, piece))

    def data(self, stream: SendingStream, data: bytes, last: bool) -> None:
        """Send data of a stream, or hold what the client does not allow yet."""
        size = len(data)
        if stream.unsent:
            stream.hold(data)
            stream.ends = last
            return
        if size <= self._window and size <= stream.window and self._free(size):
            self._write_data(stream, data, last)
        elif size:
            stream.hold(data)
            stream.ends = last
            while stream.unsent and self._free(0) and self._window > 0 and stream.window > 0:
                self._cut(stream)
        else:
            self._write_data(stream, data, last)
        if stream.unsent:
            self._let_through(stream)
        elif last:
            stream.over()

    def _free(self, size: int) -> bool:
        """Whether a frame of this size may be written now."""
        return not self._paused and not self._pumping and size <= self._most_payload

    def _write_data(self, stream: SendingStream, data: bytes | memoryview, last: bool) -> None:
        size = len(data)
        self._window -= size
        stream.window -= size
        self._meter.sent(size)
        flags = frames.END_STREAM if last else 0
        self._parts.append(
            frames.HEAD.pack(size >> 16, size & 0xFFFF, frames.DATA, flags, stream.number)
        )
        self.write(data)

    def _cut(self, stream: SendingStream) -> None:
        """Write one frame of what waits."""
        data = stream.take(min(self._window, stream.window, self._most_payload))
        self._write_data(stream, data, stream.ends and not stream.unsent)

    def _let_through(self, stream: SendingStream) -> None:
        if stream.unsent and stream.window > 0:
            self._sendable[stream] = None

    def _pump(self) -> None:
        """Send a frame of each stream in turn. Streams that are drained may add data meanwhile."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._sendable and self._window > 0 and not self._paused:
                stream = next(iter(self._sendable))
                del self._sendable[stream]
                self._cut(stream)
                if stream.unsent:
                    self._let_through(stream)
                elif stream.ends:
                    stream.over()
                else:
                    stream.drained()
        finally:
            self._pumping = False

    # --- what the client allows --------------------------------------------------------------

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._pump()

    def widen(self, more: int) -> None:
        if not more or self._window + more > frames.MOST_WINDOW:
            raise ProtocolError(frames.FLOW_ERROR, "a window that grows by nothing, or without end")
        self._window += more
        self._pump()

    def widen_stream(self, stream: SendingStream, more: int) -> bool:
        """Returns False if the window would be larger than allowed."""
        if stream.window + more > frames.MOST_WINDOW:
            return False
        stream.window += more
        self._let_through(stream)
        self._pump()
        return True

    def change_initial(self, initial: int, streams: Iterable[SendingStream]) -> None:
        """Raises ``ProtocolError``."""
        more, self._initial = initial - self._initial, initial
        for stream in streams:
            if stream.window + more > frames.MOST_WINDOW:
                raise ProtocolError(frames.FLOW_ERROR, "a window without end")
            stream.window += more
            if stream.window > 0:
                self._let_through(stream)
            else:
                self._sendable.pop(stream, None)
        self._pump()

    def limit_payload(self, most: int) -> None:
        """Send frames of at most ``most`` bytes, as the client's settings ask."""
        self._most_payload = min(most, _MOST_PAYLOAD)

    def backlog(self) -> int:
        """Bytes that were written and that the client has not taken."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def takes_nothing(self, now: float) -> bool:
        """Return whether the client has stopped reading what was written."""
        unsent = self.backlog()
        if unsent != self._stalled[0]:
            self._stalled = unsent, now
        return unsent > 0 and now - self._stalled[1] > limits.UNREAD_SECONDS

    def drop(self, stream: SendingStream) -> None:
        """The stream has ended: what waited of it is not sent."""
        self._sendable.pop(stream, None)

    def close(self) -> None:
        """The connection is lost."""
        self._transport = None
        self._parts.clear()
        self._sendable.clear()
