"""HTTP/1.1 on httptools: reads requests, writes answers, and knows nothing of Kubernetes.

Hand-written because it is the hot path (docs/performance.md has the comparison): answers that
need no waiting are written in the same turn of the event loop, and a client that goes away
cancels what it asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from math import inf
from time import monotonic
from typing import Any, cast

import httptools

from instar.access.attributes import User
from instar.server.auth import user_of_certificate
from instar.server.eager import start
from instar.server.httphead import head
from instar.server.request import MAX_BODY, Request, parse_query
from instar.server.responses import Feed, Response

log = logging.getLogger(__name__)
Handler = Callable[[Request, User | None], Coroutine[Any, Any, Response]]

_MAX_HEADERS = 64 << 10
_MAX_PIPELINED = 16
_SMALL = 64 << 10
"""Bytes written at once; more is written in pieces, at the client's pace."""
_WRITE_BUFFER = 256 << 10
_TURN = 1 << 20
_IDLE_SECONDS = 180.0
_HEADER_SECONDS = 32.0
_BODY_SECONDS = 30.0
_UNREAD_SECONDS = 60.0


class Connections:
    """All open connections of a server, for orderly shutdown and for closing idle ones."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.closing = False
        self._open: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Event | None = None

    def __call__(self) -> Connection:
        return Connection(self)

    def add(self, connection: Connection) -> None:
        self._open.add(connection)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(5.0, self._sweep)

    def discard(self, connection: Connection) -> None:
        self._open.discard(connection)
        if not self._open and self._emptied is not None:
            self._emptied.set()

    async def close(self, grace: float) -> None:
        """Let running requests finish, then close everything."""
        self.closing = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self._open):
            connection.close_when_idle()
        if self._open:
            self._emptied = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), grace)
        for connection in tuple(self._open):
            connection.abort()

    def _sweep(self) -> None:
        now = monotonic()
        for connection in tuple(self._open):
            connection.close_if_stalled(now)
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(5.0, self._sweep) if self._open else None


class Connection(asyncio.Protocol):
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._peer: User | None = None
        self._queue: deque[tuple[Request, bool]] = deque()
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._busy = False
        self._feed: Feed | None = None
        self._feed_keeps_alive = True
        self._writable: asyncio.Future[None] | None = None
        self._paused = False
        self._last_activity = monotonic()
        self._unsent = 0
        self._unsent_since = 0.0
        self._reading_request = False
        self._header_deadline = inf
        self._refused = False
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_size = 0
        self._body: list[bytes] = []
        self._body_size = 0

    # --- asyncio -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._peer = user_of_certificate(tls.getpeercert())
        self._connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.discard(self)
        self._transport = None
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._last_activity = monotonic()
        if self._refused:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The request is served as if it had not asked; what follows is HTTP as before.
            self._parser = httptools.HttpRequestParser(self)
            rest = data[upgrade.args[0] :]
            if rest:
                self.data_received(rest)
        except httptools.HttpParserError:
            self._refuse(400, b"400 Bad Request\n")

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        if self._feed is not None:
            self._feed.resume()

    # --- httptools -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._reset()
        self._reading_request = True
        self._header_deadline = monotonic() + _HEADER_SECONDS

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.setdefault(name.lower(), value)
        self._count(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._header_deadline = inf
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and self._transport:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        self._body_size += len(data)
        if self._body_size <= MAX_BODY:
            self._body.append(data)
        else:
            self._body = []

    def on_message_complete(self) -> None:
        self._reading_request = False
        if self._refused:
            return
        path, _, query = self._url.partition(b"?")
        request = Request(
            method=self._parser.get_method().decode(),
            path=path.decode("latin-1"),
            query=parse_query(query),
            headers=self._headers,
            body=b"".join(self._body),
            too_large=self._body_size > MAX_BODY,
        )
        keep_alive = self._parser.should_keep_alive() and not self._connections.closing
        if self._busy:
            self._queue.append((request, keep_alive))
            if len(self._queue) > _MAX_PIPELINED and self._transport is not None:
                self._transport.pause_reading()
        else:
            self._serve(request, keep_alive)

    # --- serving -------------------------------------------------------------------------

    def _serve(self, request: Request, keep_alive: bool) -> None:
        self._busy = True
        started = start(self._exchange(request, keep_alive))
        if started is None:
            return
        self._task = started
        if request.patience:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(request.patience, _expire, request, started)

    async def _exchange(self, request: Request, keep_alive: bool) -> None:
        """The answer is written in the step in which it is found, not in a callback after it."""
        try:
            response = await self._connections.handler(request, self._peer)
        except (Exception, asyncio.CancelledError) as failure:
            # Where it was not the client who left, it would wait for an answer for ever.
            if self._transport is not None:
                log.error("%s %s got no answer", request.method, request.path, exc_info=failure)
            self.abort()
            return
        finally:
            self._task = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        self._respond(request, response, keep_alive)

    def _respond(self, request: Request, response: Response, keep_alive: bool) -> None:
        if response.stream is not None and request.method == "HEAD":
            response.stream.close()
        elif response.stream is not None:
            self._open_stream(response, response.stream, keep_alive)
            return
        if response.length <= _SMALL:
            if self._transport is not None:
                self._write_small(request, response, keep_alive)
            self._next()
            return
        writing = self._write_large(request, response, keep_alive)
        self._task = asyncio.get_running_loop().create_task(writing)

    def _open_stream(self, response: Response, feed: Feed, keep_alive: bool) -> None:
        if self._transport is None:
            feed.close()
            return
        self._feed, self._feed_keeps_alive = feed, keep_alive
        self._write(head(response, keep_alive, b"transfer-encoding: chunked\r\n"))
        feed.open(self)

    def send(self, data: bytes) -> None:
        if data and self._transport is not None:  # an empty chunk would be the end of the answer
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def backlog(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def finish(self) -> None:
        if self._feed is None or self._transport is None:
            return
        self._feed = None
        self._write(b"0\r\n\r\n")
        self._finish(self._feed_keeps_alive)
        self._next()

    async def _write_large(self, request: Request, response: Response, keep_alive: bool) -> None:
        try:
            await self._write_body(request, response, keep_alive)
        except ConnectionError:
            self.abort()
        finally:
            self._task = None
        self._next()

    async def _write_body(self, request: Request, response: Response, keep_alive: bool) -> None:
        self._write(head(response, keep_alive, b"content-length: %d\r\n" % response.length))
        if request.method != "HEAD":
            sent = 0
            for chunk in response.chunks:
                self._write(chunk)
                await self._drain()
                sent += len(chunk)
                if sent > _TURN:  # however fast this client takes it, others want their turn
                    sent = 0
                    await asyncio.sleep(0)
        self._finish(keep_alive)

    def _write_small(self, request: Request, response: Response, keep_alive: bool) -> None:
        length = b"content-length: %d\r\n" % response.length
        if request.method == "HEAD":
            self._write(head(response, keep_alive, length))
        else:
            self._write(b"".join((head(response, keep_alive, length), *response.chunks)))
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
        if not keep_alive and self._transport is not None:
            self._queue.clear()
            self._refused = True
            self._transport.close()

    def _next(self) -> None:
        if self._transport is not None and self._queue:
            # Not here: as many calls would stand upon each other as a client sends at once.
            asyncio.get_running_loop().call_soon(self._serve_queued)
            return
        self._busy = False
        if self._transport is not None and self._connections.closing:
            self._transport.close()

    def _serve_queued(self) -> None:
        if self._transport is None:
            self._busy = False
            return
        request, keep_alive = self._queue.popleft()
        self._transport.resume_reading()
        self._serve(request, keep_alive)

    # --- limits --------------------------------------------------------------------------

    def close_when_idle(self) -> None:
        if not self._busy and self._transport is not None:
            self._transport.close()

    def close_if_stalled(self, now: float) -> None:
        """Headers have a deadline, so that a drop now and then does not hold a connection."""
        if self._busy:
            if self._takes_nothing(now):
                self.abort()
            return
        limit = _BODY_SECONDS if self._reading_request else _IDLE_SECONDS
        if now > self._header_deadline or now - self._last_activity > limit:
            self.abort()

    def _takes_nothing(self, now: float) -> bool:
        """Whether the client has stopped reading an answer, which is held in memory for it."""
        unsent = self.backlog()
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        return unsent > 0 and now - self._unsent_since > _UNREAD_SECONDS

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _count(self, size: int) -> None:
        self._header_size += size
        if self._header_size > _MAX_HEADERS:
            self._refuse(431, b"431 Request Header Fields Too Large\n")

    def _refuse(self, status: int, text: bytes) -> None:
        if self._refused or self._transport is None:
            return
        self._refused = True
        response = Response(status, (text,), [(b"content-type", b"text/plain; charset=utf-8")])
        length = b"content-length: %d\r\n" % len(text)
        self._transport.write(head(response, False, length) + text)
        self._transport.close()

    def _reset(self) -> None:
        self._url = b""
        self._headers = {}
        self._header_size = 0
        self._body = []
        self._body_size = 0


def _expire(request: Request, task: asyncio.Task[None]) -> None:
    """The handler turns the cancellation into an answer."""
    request.expired = True
    task.cancel()
