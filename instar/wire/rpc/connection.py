"""One HTTP/2 connection with many calls: frame parsing, flow control, pings and keep-alive.

Created by ``channel.py``, which reconnects. When the peer is gone, silent or violates the protocol,
every call on the connection ends with an error that says whether the call was sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import cast

from instar.base.http2 import frames
from instar.base.http2.frames import ProtocolError
from instar.base.http2.huffman import Garbled
from instar.base.supervision import report_failure
from instar.wire.rpc import headers
from instar.wire.rpc.outgoing import Outgoing
from instar.wire.rpc.status import GrpcCode, RpcError
from instar.wire.rpc.stream import Http2Stream

_WINDOW = 4 << 20
"""Receive window of a call and of the connection, in bytes."""
_HELLO = (
    frames.PREFACE
    + frames.settings(
        {
            frames.HEADER_TABLE_SIZE: 0,
            frames.ENABLE_PUSH: 0,
            frames.INITIAL_WINDOW: _WINDOW,
            frames.MAX_HEADERS: headers.MOST_BYTES,
        }
    )
    + frames.window_update(0, _WINDOW - frames.DEFAULT_WINDOW)
)
_PING_AFTER = 7.0
"""Seconds of silence with calls in flight before a ping; etcd rejects pings within 5 s."""
_PING_PATIENCE = 3.0
_PONG_AFTER = 0.1
"""Seconds until a ping is answered. Servers measure bandwidth by one ping beside every message
while none is unanswered, so answering at once would cost a system call per call on both sides.
Keep-alive pings allow seconds."""
_MOST_PINGS = 8
"""Unanswered pings above which all are answered at once."""
_LAST_NUMBER = frames.MOST_STREAM
"""Stream ids are not reused: after this one a new connection is needed."""
_RESETS = {
    frames.REFUSED_STREAM: GrpcCode.UNAVAILABLE,
    frames.CANCEL: GrpcCode.CANCELLED,
    frames.CALM_DOWN: GrpcCode.RESOURCE_EXHAUSTED,
    frames.INADEQUATE_SECURITY: GrpcCode.PERMISSION_DENIED,
}


class Http2Connection(asyncio.Protocol):
    """One HTTP/2 connection of the gRPC client."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.ready: asyncio.Future[None] = loop.create_future()
        """Done when the server has sent its settings; until then no call is sent."""
        self.closed: asyncio.Future[None] = loop.create_future()
        self.takes_calls = False
        self._greeted = False
        self._streams: dict[int, Http2Stream] = {}
        self._waiting: deque[tuple[Http2Stream, bytes, bool]] = deque()
        self._next_id = 1
        self._most_streams = 1 << 31
        self._rest = b""
        self._block: tuple[int, int, bytes] | None = None
        """Stream, flags and beginning of a header block that continues in the next frame."""
        self._received = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = inf
        self._heartbeat: asyncio.TimerHandle | None = None
        self._heard = True
        self._pings: list[bytes] = []
        self._pong: asyncio.TimerHandle | None = None
        self._failure = RpcError(GrpcCode.UNAVAILABLE, "the connection is closed")

    # -- calls

    def open(self, stream: Http2Stream, data: bytes, last: bool) -> None:
        """Send a call's headers and first data. Only while ``takes_calls``."""
        if len(self._streams) >= self._most_streams:
            self._waiting.append((stream, data, last))
        else:
            self._begin(stream, data, last)
        if stream.deadline < self._alarm_at:
            self._set_alarm(stream.deadline)

    def flush(self) -> None:
        """Write buffered frames at once."""
        self._outgoing.flush()

    def send(self, stream: Http2Stream, data: bytes) -> None:
        """Send more data of an open call."""
        if stream.id and not stream.done:
            self._outgoing.data(stream, data, False)

    def give_up(self, stream: Http2Stream, error: RpcError) -> None:
        """Abandon a call, because its caller was cancelled or timed out."""
        if not stream.done:
            stream.finish(error.copy(unsent=not stream.id))
            self._forget(stream)

    def close(self, why: RpcError | None = None) -> None:
        """Close at once; calls in flight fail."""
        if why is not None:
            self._failure = why
        self.takes_calls = False
        self._outgoing.flush()
        self._transport.abort()

    def _begin(self, stream: Http2Stream, data: bytes, last: bool) -> None:
        stream.id = self._next_id
        self._next_id += 2
        self._streams[stream.id] = stream
        self._outgoing.begin(stream, data, last)
        if self._next_id > _LAST_NUMBER:
            self._retire()

    def _forget(self, stream: Http2Stream) -> None:
        if self._streams.pop(stream.id, None) is not None and not self._transport.is_closing():
            self._outgoing.end(stream)
        self._admit()
        self._close_if_idle()

    def _admit(self) -> None:
        while self._waiting and len(self._streams) < self._most_streams:
            waiting, data, last = self._waiting.popleft()
            if not waiting.done:
                self._begin(waiting, data, last)

    def _retire(self) -> None:
        """Finish calls in flight, but accept no new ones."""
        self.takes_calls = False
        refused = RpcError(GrpcCode.UNAVAILABLE, "the server takes no more calls", unsent=True)
        while self._waiting:
            self._waiting.popleft()[0].finish(refused.copy())
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if not self.takes_calls and self.ready.done() and not self._streams:
            self._outgoing.flush()
            self._transport.close()

    # -- time

    def _set_alarm(self, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = when
        self._alarm = None if when == inf else self._loop.call_at(when, self._check_deadlines)

    def _check_deadlines(self) -> None:
        now = self._loop.time()
        streams = [*self._streams.values(), *(waiting[0] for waiting in self._waiting)]
        late = RpcError(GrpcCode.DEADLINE_EXCEEDED, "no answer in time")
        for stream in streams:
            if stream.deadline <= now:
                try:
                    self.give_up(stream, late)
                except Exception as error:  # the deadlines of the others go on
                    report_failure("rpc", error)
        left = [stream.deadline for stream in streams if not stream.done]
        self._set_alarm(min(left, default=inf))

    def _ping_if_silent(self) -> None:
        if self._heard or not self._streams:
            self._heard = False
            self._heartbeat = self._loop.call_later(_PING_AFTER, self._ping_if_silent)
        else:
            self._outgoing.write(frames.frame(frames.PING, 0, 0, bytes(8)))
            self._heartbeat = self._loop.call_later(_PING_PATIENCE, self._judge_silence)

    def _take_ping(self, payload: bytes) -> None:
        self._pings.append(payload)
        if len(self._pings) > _MOST_PINGS:
            self._answer_pings()
        elif self._pong is None:
            self._pong = self._loop.call_later(_PONG_AFTER, self._answer_pings)

    def _answer_pings(self) -> None:
        if self._pong is not None:
            self._pong.cancel()
            self._pong = None
        for payload in self._pings:
            self._outgoing.write(frames.frame(frames.PING, frames.ACK, 0, payload))
        self._pings.clear()

    def _judge_silence(self) -> None:
        if self._heard:
            self._ping_if_silent()
        else:
            self.close(RpcError(GrpcCode.UNAVAILABLE, "the server does not answer a ping"))

    # -- transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has another base class
        self._transport = cast("asyncio.Transport", transport)
        # Write at once: uvloop would collect until the end of this loop iteration, and ``Outgoing``
        # has collected already.
        self._transport.set_write_buffer_limits(high=0)
        self._outgoing = Outgoing(self._loop, self._transport)
        self._outgoing.write(_HELLO)
        self._ping_if_silent()

    def connection_lost(self, exc: Exception | None) -> None:
        self.takes_calls = False
        for timer in (self._alarm, self._heartbeat, self._pong):
            if timer is not None:
                timer.cancel()
        if exc is not None:
            self._failure = RpcError(GrpcCode.UNAVAILABLE, str(exc) or type(exc).__name__)
        if not self.ready.done():
            self.ready.set_exception(self._failure)
        for stream in self._outgoing.unsent:
            stream.finish(self._failure.copy(unsent=True))
        streams = [*self._streams.values()]
        self._streams.clear()
        for stream in streams:
            stream.finish(self._failure.copy())
        while self._waiting:
            self._waiting.popleft()[0].finish(self._failure.copy(unsent=True))
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        if self._rest:
            data = self._rest + data
        try:
            self._rest = self._read(data)
        except ProtocolError as error:
            self._outgoing.write(frames.goaway(error.code))
            self.close(RpcError(GrpcCode.INTERNAL, f"the server breaks HTTP/2: {error}"))
        except Garbled as error:
            self._outgoing.write(frames.goaway(frames.COMPRESSION_ERROR))
            self.close(RpcError(GrpcCode.INTERNAL, f"the server's headers cannot be read: {error}"))

    # -- frames

    def _read(self, data: bytes) -> bytes:
        """Process every complete frame; return the incomplete rest."""
        at, size = 0, len(data)
        while size - at >= frames.HEAD_SIZE:
            high, low, kind, flags, number = frames.HEAD.unpack_from(data, at)
            length = high << 16 | low
            if length > frames.MOST_PAYLOAD:
                raise ProtocolError(frames.PROTOCOL_ERROR, f"a frame of {length} bytes")
            end = at + frames.HEAD_SIZE + length
            if end > size:
                break
            self._take(kind, flags, number & frames.MOST_STREAM, data[at + 9 : end])
            if self._transport.is_closing():
                return b""
            at = end
        return data[at:]

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._block is not None and kind != frames.CONTINUATION:
            raise ProtocolError(frames.PROTOCOL_ERROR, "headers that are interrupted")
        if not self._greeted and kind != frames.SETTINGS:
            raise ProtocolError(frames.PROTOCOL_ERROR, "a greeting without settings")
        if kind == frames.DATA:
            self._take_data(flags, number, payload)
        elif kind == frames.HEADERS:
            self._take_headers(flags, number, frames.strip_padding(payload, flags))
        elif kind == frames.CONTINUATION:
            self._go_on(flags, number, payload)
        elif kind == frames.WINDOW:
            self._take_window(number, frames.read_number(payload) & frames.MOST_WINDOW)
        elif kind == frames.SETTINGS:
            self._take_settings(flags, payload)
        elif kind == frames.PING:
            if not flags & frames.ACK:
                self._take_ping(payload)
        elif kind == frames.RST_STREAM:
            self._take_reset(number, frames.read_number(payload))
        elif kind == frames.GOAWAY:
            self._take_goaway(payload)
        elif kind == frames.PUSH_PROMISE:
            raise ProtocolError(frames.PROTOCOL_ERROR, "a push, though we take none")

    def _stream(self, number: int) -> Http2Stream | None:
        """Return the stream; ``None`` for an ended call, because late frames of it may still
        arrive."""
        if number >= self._next_id or not number & 1:
            raise ProtocolError(frames.PROTOCOL_ERROR, f"call {number} was never made")
        return self._streams.get(number)

    def _take_data(self, flags: int, number: int, payload: bytes) -> None:
        stream, size = self._stream(number), len(payload)
        self._received += size
        if self._received > _WINDOW // 2:
            self._received = self._return_window(0, self._received)
        if stream is None:
            return
        stream.received += size
        last = stream.heard_all = bool(flags & frames.END_STREAM)
        if stream.received > _WINDOW // 2 and not last:
            stream.received = self._return_window(number, stream.received)
        stream.take_data(frames.strip_padding(payload, flags & frames.PADDED), last)
        if stream.done:
            self._forget(stream)

    def _return_window(self, number: int, received: int) -> int:
        if received > _WINDOW:
            raise ProtocolError(frames.FLOW_ERROR, "more than was allowed")
        self._outgoing.write(frames.window_update(number, received))
        return 0

    def _take_headers(self, flags: int, number: int, block: bytes) -> None:
        if not flags & frames.END_HEADERS:
            self._block = number, flags, block
            return
        stream = self._stream(number)
        found = headers.read(block)
        if stream is None:
            return
        last = stream.heard_all = bool(flags & frames.END_STREAM)
        stream.take_headers(found, last)
        if stream.done:
            self._forget(stream)

    def _go_on(self, flags: int, number: int, payload: bytes) -> None:
        begun, self._block = self._block, None
        if begun is None or begun[0] != number:
            raise ProtocolError(frames.PROTOCOL_ERROR, "headers that go on without a beginning")
        if len(begun[2]) + len(payload) > headers.MOST_BYTES:
            raise ProtocolError(frames.CALM_DOWN, "headers without end")
        more = flags & frames.END_HEADERS
        self._take_headers(begun[1] & ~frames.PADDED | more, number, begun[2] + payload)

    def _take_window(self, number: int, more: int) -> None:
        if not number:
            self._outgoing.widen(more)
        elif (stream := self._stream(number)) is not None:
            self._outgoing.widen_stream(stream, more)

    def _take_settings(self, flags: int, payload: bytes) -> None:
        if flags & frames.ACK:
            return
        for name, value in frames.read_settings(payload):
            if name == frames.MAX_STREAMS:
                self._most_streams = value
            elif name == frames.INITIAL_WINDOW:
                self._outgoing.change_window(value, self._streams.values())
            elif name == frames.MAX_FRAME:
                self._outgoing.most_payload = max(value, frames.MOST_PAYLOAD)
        self._outgoing.write(frames.frame(frames.SETTINGS, frames.ACK, 0, b""))
        self._admit()
        if not self.ready.done():
            self.takes_calls = self._greeted = True
            self.ready.set_result(None)

    def _take_reset(self, number: int, code: int) -> None:
        stream = self._stream(number)
        if stream is not None:
            del self._streams[number]
            unsent = code == frames.REFUSED_STREAM
            text = f"the server has ended the call (HTTP/2 error {code})"
            stream.finish(RpcError(_RESETS.get(code, GrpcCode.INTERNAL), text, unsent=unsent))
            self._forget(stream)

    def _take_goaway(self, payload: bytes) -> None:
        last, code = (
            frames.read_number(payload) & frames.MOST_STREAM,
            frames.read_number(payload, 4),
        )
        text = f"the server takes leave (HTTP/2 error {code})"
        refused = RpcError(GrpcCode.UNAVAILABLE, text, unsent=True)
        for number in [number for number in self._streams if number > last]:
            self._streams.pop(number).finish(refused.copy())
        self._retire()
