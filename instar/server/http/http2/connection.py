"""One HTTP/2 connection of the server: opens streams, keeps to the client's limits, and ours.

``protocols.py`` makes one where TLS agreed on ``h2``; the event loop calls the rest. Requests are
served like pipelined ones of HTTP/1.1: the first of a read at once, others in their turn. Frames
that make work and bring no request further are metered (``flood.py``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import cast

from instar.base import limits
from instar.base.http2 import frames
from instar.base.http2.frames import ProtocolError
from instar.base.http2.hpack import HeaderDecoder
from instar.base.http2.huffman import Garbled
from instar.kube.access.attributes import User
from instar.server.http.body_stream import BodyStream
from instar.server.http.http2.bodies import ConnectionBodies
from instar.server.http.http2.flood import FloodMeter
from instar.server.http.http2.heads import (
    CONTINUE,
    HeaderCache,
    MalformedRequest,
    RequestHead,
    header_block,
)
from instar.server.http.http2.incoming import IncomingRequest
from instar.server.http.http2.reading import Http2FrameReader
from instar.server.http.http2.sending import Http2Sender
from instar.server.http.http2.settings import check_ping, four_bytes, greeting, read_settings
from instar.server.http.http2.stream import ServerHttp2Stream
from instar.server.http.messages import Request
from instar.server.http.request_service import RequestService

_LINGER_SECONDS = 1.0


class ServerHttp2Connection(asyncio.Protocol):
    """The streams of one client."""

    def __init__(self, service: RequestService) -> None:
        now = monotonic()
        self.service = service
        self.peer: User | None = None
        self.always = header_block(service.every_answer)
        self.unread_answers = 0
        self.sender: Http2Sender
        self._transport: asyncio.Transport | None = None
        self._remote = ""
        self._decoder = HeaderDecoder()
        self._meter = FloodMeter(now)
        self._usual = HeaderCache()
        self._reader = Http2FrameReader(self, self._meter)
        self._streams: dict[int, ServerHttp2Stream] = {}
        self._ready: deque[tuple[ServerHttp2Stream, Request]] = deque()
        """Complete requests that wait for their turn."""
        self._last = 0
        """The last stream that the client has opened."""
        self._unread = b""
        """Data that waits for the connection's turn."""
        self._bodies = ConnectionBodies(service)
        self._may_serve = self._in_line = self._leaving = self._failed = False
        self._last_activity = now

    # --- asyncio -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=limits.WRITE_BUFFER)
        self._remote = (transport.get_extra_info("peername") or ("",))[0]
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self.peer = self.service.peer_of(tls)
        self.sender = Http2Sender(self._transport, self._meter)
        self.service.add(self)
        self.sender.write(greeting(self.service.most_streams))
        self.sender.flush()

    def connection_lost(self, error: Exception | None) -> None:
        self.service.discard(self)
        self._transport = None
        self.sender.close()
        self._unread = b""
        self._ready.clear()
        for stream in tuple(self._streams.values()):
            stream.end()
        del self._reader  # it refers to this connection, which is freed at once

    def data_received(self, data: bytes) -> None:
        if self._failed:
            return
        self._last_activity = now = monotonic()
        self._meter.refill(now)
        if not self._unread and self.service.turns.admit(now):
            self._read(data)
        else:
            self._hold(self._unread + data)
            self._stand_in_line(new=not self._streams)

    def pause_writing(self) -> None:
        self.sender.pause()

    def resume_writing(self) -> None:
        self.sender.resume()

    # --- turns of the event loop ---------------------------------------------------------

    def _read(self, data: bytes) -> None:
        self._may_serve = True
        self.sender.hold()
        try:
            rest = self._reader.feed(data)
        except ProtocolError as error:
            self._fail(error.code, str(error))
            return
        self._may_serve = False
        self.sender.flush()
        if rest:
            self._hold(rest)
        self._line_up()

    def _hold(self, data: bytes) -> None:
        self._unread = data
        if self._transport is not None:
            self._transport.pause_reading()

    def _stand_in_line(self, *, new: bool) -> None:
        if not self._in_line:
            self._in_line = True
            self.service.turns.wait(self, new=new)

    def _line_up(self) -> None:
        """Wait for a turn if there is something to do."""
        if self._unread or (self._ready and self._has_room()):
            self._stand_in_line(new=False)

    def take_turn(self) -> None:
        """Serve a request that waits, or read what was received."""
        self._in_line = False
        if self._transport is None:
            return
        if self._ready and self._has_room():
            stream, request = self._ready.popleft()
            stream.serve(request)
            self._line_up()
        elif self._unread:
            data, self._unread = self._unread, b""
            self._transport.resume_reading()
            self._read(data)

    def _has_room(self) -> bool:
        """Whether the client reads what it is sent."""
        return self.unread_answers <= limits.UNREAD_ANSWERS

    # --- requests ------------------------------------------------------------------------

    def take_headers(self, number: int, block: bytes, last: bool) -> None:
        try:
            fields = self._decoder.decode(block, limits.MAX_HEAD)
        except Garbled as error:
            raise ProtocolError(frames.COMPRESSION_ERROR, str(error)) from error
        if not number & 1:
            raise ProtocolError(frames.PROTOCOL_ERROR, f"a request on stream {number}")
        if number <= self._last:
            self._take_trailers(number, last)
            return
        if self._leaving:  # the client was told, and asks again on another connection
            return
        self._last = number
        if len(self._streams) >= self.service.most_streams:
            self._refuse(number, frames.REFUSED_STREAM)
            return
        try:
            head = None if fields is None else RequestHead(fields, self._usual)
        except MalformedRequest:
            self._refuse(number, frames.PROTOCOL_ERROR)
            return
        stream = self._streams[number] = ServerHttp2Stream(self, number)
        if head is None:
            stream.answer_early(431, b"431 Request Header Fields Too Large\n")
        else:
            self._begin(stream, head, last)

    def _begin(self, stream: ServerHttp2Stream, head: RequestHead, last: bool) -> None:
        deadline = self._last_activity + limits.BODY_SECONDS
        incoming = IncomingRequest(head, limits.STREAM_WINDOW, deadline)
        if last:
            self._complete(stream, incoming)
            return
        stream.incoming = incoming
        if (wanted := self.service.streamed.wanted) is not None and wanted(head.target):
            self._serve(stream, incoming.pass_on(BodyStream(stream)))
        if incoming.waits_for_continue:
            self.sender.headers(stream.number, 0, CONTINUE)

    def _take_trailers(self, number: int, last: bool) -> None:
        """What follows a body is ignored: it could hold a credential."""
        stream = self._streams.get(number)
        if stream is None or stream.incoming is None:
            self._meter.spend()
        elif last:
            self._complete(stream, stream.incoming)
        else:
            stream.reset(frames.PROTOCOL_ERROR)

    def _refuse(self, number: int, code: int) -> None:
        self._meter.spend()
        self.sender.write(frames.reset(number, code))

    def _complete(self, stream: ServerHttp2Stream, incoming: IncomingRequest) -> None:
        try:
            incoming.check_length()
        except MalformedRequest:
            stream.reset(frames.PROTOCOL_ERROR)
            return
        stream.incoming = None
        if incoming.stream is None:
            self._serve(stream, incoming.request())
        else:
            incoming.stream.end()

    def _serve(self, stream: ServerHttp2Stream, request: Request) -> None:
        request.remote = self._remote
        if self._may_serve and not self._ready and self._has_room():
            self._may_serve = False
            stream.serve(request)
        else:
            self._ready.append((stream, request))

    # --- bodies --------------------------------------------------------------------------

    def _take_data(self, flags: int, number: int, payload: bytes) -> None:
        size, last = len(payload), bool(flags & frames.END_STREAM)
        if more := self._bodies.receive(size):
            self.sender.write(frames.window_update(0, more))
        data = frames.strip_padding(payload, flags & frames.PADDED)
        if not data and not last:
            self._meter.spend()
        stream = self._open_stream(number)
        if stream is None:
            self._meter.spend()
        elif stream.incoming is None:
            stream.reset(frames.STREAM_CLOSED)
        else:
            self._take_body(stream, stream.incoming, data, size)
            if last and stream.incoming is not None:
                self._complete(stream, stream.incoming)

    def _take_body(
        self, stream: ServerHttp2Stream, incoming: IncomingRequest, data: bytes, size: int
    ) -> None:
        more = incoming.receive(size)
        if more < 0:
            stream.reset(frames.FLOW_ERROR)
            return
        self.widen(stream, more)
        try:
            incoming.add(data)
        except MalformedRequest:
            stream.reset(frames.PROTOCOL_ERROR)
            return
        if not incoming.held:
            self.release_body(stream)
        elif not self._bodies.hold(stream, incoming.held):
            stream.answer_early(503, b"503 Service Unavailable: too many large bodies at once\n")

    def widen(self, stream: ServerHttp2Stream, more: int) -> None:
        if more:
            self.sender.write(frames.window_update(stream.number, more))

    def release_body(self, stream: ServerHttp2Stream) -> None:
        self._bodies.release(stream)

    # --- other frames --------------------------------------------------------------------

    def take_frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == frames.DATA:
            self._take_data(flags, number, payload)
        elif kind == frames.WINDOW:
            self._take_window(number, four_bytes(payload) & frames.MOST_WINDOW)
        elif kind == frames.RST_STREAM:
            four_bytes(payload)
            self._meter.spend()
            if (stream := self._open_stream(number)) is not None:
                stream.end()
        elif kind == frames.SETTINGS:
            self._take_settings(flags, number, payload)
        elif kind == frames.PING:
            self._take_ping(flags, number, payload)
        elif kind == frames.GOAWAY:
            self._leave()
        elif kind != frames.PUSH_PROMISE:  # priorities, and frames of extensions
            self._meter.spend()
        else:
            raise ProtocolError(frames.PROTOCOL_ERROR, "a push by a client")

    def _open_stream(self, number: int) -> ServerHttp2Stream | None:
        """Return the stream; ``None`` for an ended one, because late frames of it may still
        arrive."""
        if (number > self._last and not self._leaving) or not number & 1:
            raise ProtocolError(frames.PROTOCOL_ERROR, f"a frame of stream {number}")
        return self._streams.get(number)

    def _take_window(self, number: int, more: int) -> None:
        self._meter.spend()
        if not number:
            self.sender.widen(more)
            return
        stream = self._open_stream(number)
        if stream is not None and not more:
            stream.reset(frames.PROTOCOL_ERROR)
        elif stream is not None and not self.sender.widen_stream(stream, more):
            stream.reset(frames.FLOW_ERROR)

    def _take_settings(self, flags: int, number: int, payload: bytes) -> None:
        found = read_settings(flags, number, payload)
        if flags & frames.ACK:
            return
        self._meter.spend()
        initial = found.get(frames.INITIAL_WINDOW, self.sender.initial_window)
        if initial != self.sender.initial_window:
            self._meter.spend(len(self._streams) / 16)
            self.sender.change_initial(initial, self._streams.values())
        if frames.MAX_FRAME in found:
            self.sender.limit_payload(found[frames.MAX_FRAME])
        self.sender.write(frames.frame(frames.SETTINGS, frames.ACK, 0, b""))

    def _take_ping(self, flags: int, number: int, payload: bytes) -> None:
        check_ping(number, payload)
        if not flags & frames.ACK:
            self._meter.spend()
            self.sender.write(frames.frame(frames.PING, frames.ACK, 0, payload))

    # --- the end -------------------------------------------------------------------------

    def forget(self, stream: ServerHttp2Stream) -> None:
        self._streams.pop(stream.number, None)
        if self._transport is None:
            return
        if self._leaving and not self._streams:
            self.sender.flush()
            self._transport.close()
        elif self._ready:
            self._line_up()

    def _leave(self) -> None:
        """Serve what was asked, and no more."""
        if self._transport is not None and not self._leaving:
            self._leaving = True
            self.sender.write(frames.goaway(frames.NO_ERROR, self._last))
            self.sender.flush()
            if not self._streams:
                self._transport.close()

    def _fail(self, code: int, why: str) -> None:
        """Close: what follows cannot be read, or should not be."""
        assert self._transport is not None
        self._leaving = self._failed = True
        self._unread = b""
        self.sender.write(frames.goaway(code, self._last, why.encode()))
        self.sender.flush()
        self._transport.pause_reading()
        self._transport.close()
        asyncio.get_running_loop().call_later(_LINGER_SECONDS, self.abort)
        for stream in tuple(self._streams.values()):
            stream.end()

    def close_when_idle(self) -> bool:
        self._leave()
        return not self._streams

    def close_if_stalled(self, now: float) -> None:
        """Close, or end streams, where the client neither sends what it began nor reads."""
        if self.sender.takes_nothing(now) or now > self._reader.deadline:
            self.abort()
            return
        if not self._streams and now - self._last_activity > limits.IDLE_SECONDS:
            self._leave()
        for stream in tuple(self._streams.values()):
            if stream.is_late(now):
                stream.abort()

    def backlog(self) -> int:
        return self.sender.backlog() + sum(stream.unsent for stream in self._streams.values())

    def cut_off(self) -> None:
        longest = max(self._streams.values(), key=lambda stream: stream.unsent, default=None)
        (longest if longest is not None and longest.unsent else self).abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
