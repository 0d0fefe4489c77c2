"""HTTP/1.1 connection: parses requests, calls the handler, writes responses and streams.

``protocols.py`` makes one for each client of this version; the event loop calls the rest. The
module is hand-written, because it is the hot path: a response that needs no waiting is written in
the same turn of the loop, and a disconnect cancels the request.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import Any, cast

from instar.base import limits
from instar.base.eager_tasks import TasklessCoroutine, start
from instar.kube.access.attributes import User
from instar.server.http.body_stream import BodyStream
from instar.server.http.http1_request import RequestReader
from instar.server.http.http_head import sized_head
from instar.server.http.messages import TEXT_TYPE, Request, Response
from instar.server.http.request_queue import RequestQueue
from instar.server.http.request_service import RequestService
from instar.server.http.stream_outlet import StreamOutlet
from instar.server.http.write_batching import join_pieces

log = logging.getLogger(__name__)

_SMALL = 64 << 10
"""Bytes written at once; more is written in pieces, at the client's pace."""
_PIECE = 64 << 10
_TURN = 1 << 20
_LINGER_SECONDS = 1.0


class Http1Connection(StreamOutlet, asyncio.Protocol):
    """One connection: reads requests, calls the handler, writes responses in order."""

    def __init__(self, connections: RequestService) -> None:
        self._connections: RequestService = connections
        self._reader = RequestReader(self, connections.streamed)
        self._transport: asyncio.Transport | None = None
        self._peer: User | None = None
        self._remote = ""
        self._ahead = RequestQueue()
        self._task: asyncio.Task[Any] | TasklessCoroutine | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._busy = False
        self._body: BodyStream | None = None
        self._writable: asyncio.Future[None] | None = None
        self._last_activity = monotonic()
        self._unsent = 0
        self._unsent_since = 0.0
        self._in_line = False
        self._may_serve = False
        self._last_answer = False

    # --- asyncio -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=limits.WRITE_BUFFER)
        self._remote = (transport.get_extra_info("peername") or ("",))[0]
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._peer = self._connections.peer_of(tls)
        self._connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.discard(self)
        self._transport = None
        self._ahead.clear()
        self._reader.end()
        if self._task is not None:
            self._task.cancel()
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()
        self._wake()

    def data_received(self, data: bytes) -> None:
        self._last_activity = now = monotonic()
        if self._reader.stream is not None:  # its reader waits for it
            self._read(data)
            return
        if not self._ahead.unread and self._connections.turns.admit(now):
            self._read(data)
            return
        self._hold(self._ahead.unread + data)
        if not self._busy and not self._in_line:
            self._stand_in_line(new=True)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._wake()
        if self._feed is not None:
            self._feed.resume()

    def _wake(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    # --- turns of the event loop ---------------------------------------------------------

    def _read(self, data: bytes) -> None:
        """Serve the first request in the data at once; later ones wait for its response."""
        self._may_serve = True
        rest = self._reader.feed(data)
        self._may_serve = False
        if rest:
            self._hold(rest)
        if not self._ahead.empty and not self._busy and not self._in_line:
            self._stand_in_line(new=False)

    def _hold(self, data: bytes) -> None:
        self._ahead.unread = data
        if self._transport is not None:
            self._transport.pause_reading()

    def _stand_in_line(self, *, new: bool) -> None:
        self._in_line = True
        self._connections.turns.wait(self, new=new)

    def take_turn(self) -> None:
        self._in_line = False
        if self._transport is None:
            self._busy = False
        elif self._ahead:
            request, keep_alive = self._ahead.take()
            self._listen()
            self._serve(request, keep_alive)
        else:
            self._busy = False
            data = self._ahead.take_unread()
            self._listen()
            self._read(data)

    def _listen(self) -> None:
        if self._transport is not None and self._ahead.listens:
            self._transport.resume_reading()

    # --- requests ------------------------------------------------------------------------

    def requested(self, request: Request, keep_alive: bool) -> None:
        keep_alive = keep_alive and not self._connections.closing
        request.remote = self._remote
        if self._may_serve and not self._busy and not self._ahead:
            self._may_serve = False
            self._serve(request, keep_alive)
        else:
            self._ahead.add(request, keep_alive)
            if self._ahead.full and self._transport is not None:
                self._transport.pause_reading()

    def full(self) -> bool:
        return self._ahead.full

    def send_100_continue(self) -> None:
        if self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def takes(self, size: int) -> bool:
        return self._connections.receives(self, size)

    def drops(self) -> None:
        self._connections.received(self)

    def pause_body(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    resume_body = _listen

    def refuse(self, status: int, text: bytes) -> None:
        if self._transport is None:
            return
        # Without a limit a client that goes on sending would be read until it closes.
        self._transport.pause_reading()
        if self._busy or self._ahead:
            self._last_answer = True  # written into another response it would become part of that
            return
        response = Response(status, (text,), [TEXT_TYPE])
        self._transport.write(sized_head(response, False) + text)
        self._part()

    def _part(self) -> None:
        """Close without waiting for the client to close."""
        if self._transport is not None:
            self._transport.close()
            asyncio.get_running_loop().call_later(_LINGER_SECONDS, self.abort)

    # --- serving -------------------------------------------------------------------------

    def _serve(self, request: Request, keep_alive: bool) -> None:
        self._busy = True
        self._body = request.incoming
        started = start(self._exchange(request, keep_alive))
        if started is None:
            return
        self._task = started
        if request.patience:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(request.patience, request.expire, started)

    async def _exchange(self, request: Request, keep_alive: bool) -> None:
        """Write the response in the step that made it, not in a callback after it."""
        try:
            response = await self._connections.handler(request, self._peer)
        except (Exception, asyncio.CancelledError) as failure:
            # Unless the client left, it waits for a response: close instead.
            if self._transport is not None:
                log.error("%s %s has no response", request.method, request.path, exc_info=failure)
            self.abort()
            return
        finally:
            self._task = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        self._respond(request, response, keep_alive)

    def _respond(self, request: Request, response: Response, keep_alive: bool) -> None:
        self._connections.received(self)
        if response.stream is not None and request.method == "HEAD" and not response.raw:
            response.stream.close()
        elif response.stream is not None:
            self._open_stream(response, response.stream, keep_alive)
            return
        if response.length > _SMALL and not self._connections.answers(self, response.held):
            response = self._connections.refused(request)
        if response.length > _SMALL:
            writing = self._write_large(request, response, keep_alive)
        elif self._transport is None:
            self._busy = False
            return
        else:
            self._write_small(request, response, keep_alive)
            if not self._paused:
                self._next()
                return
            writing = self._wait_for_reader()
        self._task = asyncio.get_running_loop().create_task(writing)

    async def _wait_for_reader(self) -> None:
        """Wait until a client that sends requests without reading responses has read some."""
        try:
            await self._drain()
        except ConnectionError:
            return
        finally:
            self._task = None
        self._next()

    async def _write_large(self, request: Request, response: Response, keep_alive: bool) -> None:
        try:
            await self._write_body(request, response, keep_alive)
        except Exception as failure:  # the client would wait for the rest for ever
            if not isinstance(failure, ConnectionError):
                log.error("%s %s was aborted", request.method, request.path, exc_info=failure)
            self.abort()
        finally:
            self._task = None
            self._connections.answered(self)
        self._next()

    async def _write_body(self, request: Request, response: Response, keep_alive: bool) -> None:
        opening = sized_head(response, keep_alive, self._connections.always)
        pieces = iter(()) if request.method == "HEAD" else response.pieces(_PIECE)
        sent = 0
        for part in join_pieces(opening, pieces, _PIECE):
            self._write(part)
            await self._drain()
            self._connections.sent(self, len(part))
            sent += len(part)
            if sent > _TURN:  # other connections get their turn, however fast this client reads
                sent = 0
                await asyncio.sleep(0)
        self._finish(keep_alive)

    def _write_small(self, request: Request, response: Response, keep_alive: bool) -> None:
        opening = sized_head(response, keep_alive, self._connections.always)
        if request.method == "HEAD":
            self._write(opening)
        else:
            self._write(b"".join((opening, *response.chunks)))
        self._finish(keep_alive)

    def _write(self, data: bytes) -> None:
        if self._transport is None:
            raise ConnectionResetError
        self._transport.write(data)

    async def _drain(self) -> None:
        if self._transport is None:
            raise ConnectionResetError
        if self._paused:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable
            self._writable = None

    def _finish(self, keep_alive: bool) -> None:
        self._last_activity = monotonic()
        if self._body is not None:
            self._body.discard()
            self._body = None
        if not keep_alive and self._transport is not None:
            self._ahead.clear()
            self._reader.over = True
            self._transport.close()

    def _next(self) -> None:
        if self._transport is not None and not self._ahead.empty:
            # Not here: pipelined requests would nest as deeply as there are many.
            self._stand_in_line(new=False)
            return
        self._busy = False
        if self._last_answer:
            self._part()
        elif self._transport is not None and self._connections.closing:
            self._transport.close()

    # --- limits --------------------------------------------------------------------------

    def close_when_idle(self) -> bool:
        if self._busy or self._in_line:
            return False
        if self._transport is not None:
            self._transport.close()
        return True

    def close_if_stalled(self, now: float) -> None:
        """Close if the request exceeds its deadline: single bytes must not hold it open."""
        if self._busy:
            if self._takes_nothing(now):
                self.abort()
            return
        limit = limits.SILENT_SECONDS if self._reader.reading else limits.IDLE_SECONDS
        if now > self._reader.deadline or now - self._last_activity > limit:
            self.abort()

    def _takes_nothing(self, now: float) -> bool:
        """Whether the client has stopped reading a response, which is held in memory."""
        unsent = self.backlog()
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        return unsent > 0 and now - self._unsent_since > limits.UNREAD_SECONDS

    def cut_off(self) -> None:
        self.abort()
