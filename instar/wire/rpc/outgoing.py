"""Outgoing side of an HTTP/2 connection: flow control and write batching.

Used by ``connection.py``. The module sends as much of each call's data as both windows allow.
Frames of one loop iteration are written together, because a system call costs more than a frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from instar.base.http2 import frames
from instar.base.http2.frames import ProtocolError
from instar.wire.rpc.stream import Http2Stream


class Outgoing:
    """Sends frames of a connection within the peer's windows."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop, self._transport = loop, transport
        self._parts: list[bytes] = []
        self.unsent: list[Http2Stream] = []
        """Calls of which nothing has been written yet."""
        self.most_payload = frames.MOST_PAYLOAD
        self._window = frames.DEFAULT_WINDOW
        self._initial_window = frames.DEFAULT_WINDOW
        self._blocked: dict[Http2Stream, None] = {}

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self.unsent.clear()
            if not self._transport.is_closing():
                self._transport.write(data)

    def begin(self, stream: Http2Stream, data: bytes, last: bool) -> None:
        stream.window = self._initial_window
        self.unsent.append(stream)
        head = frames.frame(frames.HEADERS, frames.END_HEADERS, stream.id, stream.head)
        if self._fits(stream, data):
            self.write(head + self._cut(stream, data, last))
        else:
            self.write(head)
            self.data(stream, data, last)

    def data(self, stream: Http2Stream, data: bytes, last: bool) -> None:
        stream.ends = last
        if not stream.pending and self._fits(stream, data):
            self.write(self._cut(stream, data, last))
            return
        stream.pending += data
        self._blocked[stream] = None
        self._pump()

    def end(self, stream: Http2Stream) -> None:
        """End a call; reset the stream if either side has not finished."""
        self._blocked.pop(stream, None)
        if not (stream.said_all and stream.heard_all):
            self.write(frames.reset(stream.id, frames.CANCEL))

    def widen(self, more: int) -> None:
        self._window = _enlarged_window(self._window, more)
        self._pump()

    def widen_stream(self, stream: Http2Stream, more: int) -> None:
        stream.window = _enlarged_window(stream.window, more)
        self._pump()

    def change_window(self, initial: int, streams: Iterable[Http2Stream]) -> None:
        if initial > frames.MOST_WINDOW:
            raise ProtocolError(frames.FLOW_ERROR, "a window without end")
        more, self._initial_window = initial - self._initial_window, initial
        for stream in streams:
            stream.window += more
        self._pump()

    def _fits(self, stream: Http2Stream, data: bytes) -> bool:
        return len(data) <= min(self._window, stream.window, self.most_payload)

    def _cut(self, stream: Http2Stream, data: bytes, last: bool) -> bytes:
        self._window -= len(data)
        stream.window -= len(data)
        stream.said_all = last
        return frames.frame(frames.DATA, frames.END_STREAM if last else 0, stream.id, data)

    def _pump(self) -> None:
        for stream in [*self._blocked]:
            while stream.pending:
                size = min(self._window, stream.window, self.most_payload, len(stream.pending))
                if size <= 0:
                    break
                data = bytes(stream.pending[:size])
                del stream.pending[:size]
                last = stream.ends and not stream.pending
                self.write(self._cut(stream, data, last))
            if not stream.pending:
                self._blocked.pop(stream, None)


def _enlarged_window(window: int, more: int) -> int:
    if not more or window + more > frames.MOST_WINDOW:
        raise ProtocolError(frames.FLOW_ERROR, "a window that grows by nothing, or without end")
    return window + more
