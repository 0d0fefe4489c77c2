"""The part of an HTTP/1.1 connection that sends a response stream: chunked, or bytes as they are.

``Http1Connection`` (``http1.py``) is one. A ``Feed`` (a watch, a proxied response) writes to it.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Protocol

from instar.server.http.http1_request import RequestReader
from instar.server.http.http_head import head
from instar.server.http.messages import Feed, Response

_SWITCHING_PROTOCOLS = 101


class StreamSender(Protocol):
    """What the connections of a port share, as far as streams need it."""

    always: bytes

    def chunk(self, data: bytes) -> bytes: ...


class StreamOutlet:
    """Sends one stream at a time; a subclass has the transport and the requests."""

    _connections: StreamSender
    _reader: RequestReader
    _transport: asyncio.Transport | None
    _feed: Feed | None = None
    _feed_keeps_alive = True
    _feed_is_raw = False
    _paused = False

    @abstractmethod
    def _finish(self, keep_alive: bool) -> None: ...

    @abstractmethod
    def _next(self) -> None: ...

    def _open_stream(self, response: Response, feed: Feed, keep_alive: bool) -> None:
        if self._transport is None:
            feed.close()
            return
        switches = response.status == _SWITCHING_PROTOCOLS
        self._feed, self._feed_is_raw = feed, response.raw
        self._feed_keeps_alive = keep_alive and not switches
        framing = b"" if response.raw else b"transfer-encoding: chunked\r\n"
        opening = head(response, keep_alive or switches, framing, self._connections.always)
        self._transport.write(opening)
        feed.open(self)
        asyncio.get_running_loop().call_soon(self._reader.rest)

    def send(self, data: bytes) -> bool:
        if data and self._transport is not None:  # an empty chunk would end the response
            self._transport.write(data if self._feed_is_raw else self._connections.chunk(data))
        return not self._paused

    def backlog(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def finish(self) -> None:
        if self._feed is None or self._transport is None:
            return
        self._feed = None
        if not self._feed_is_raw:
            self._transport.write(b"0\r\n\r\n")
        self._finish(self._feed_keeps_alive)
        self._next()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
