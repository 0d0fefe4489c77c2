"""HTTP/1.1 connection to a backend that streams: one exchange at a time, with back pressure.

``backends.py`` opens and keeps connections, and ``kubelets.py`` opens one for each request;
``proxy.py`` and ``BackendPool.fetch`` read the response. Deadlines are the caller's.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools

from instar.base import limits
from instar.base.field_errors import go_quote
from instar.server.http.body_stream import ByteSink
from instar.server.http.messages import Header
from instar.wire.webhooks import dial_errors
from instar.wire.webhooks.dialer import Dialer, NotConnected
from instar.wire.webhooks.resolver import HostPort

_SWITCHING_PROTOCOLS = 101
_FULL = limits.WRITE_BUFFER
"""Bytes of a response that wait for a sink; above it the backend is not read."""


_SHOWN = 100
"""Bytes of a line that is not HTTP that an error shows."""


class BackendFailed(Exception):
    """A backend gave no usable response; the text is what a Go client says."""

    def __init__(self, text: str, *, begun: bool = False) -> None:
        super().__init__(text)
        self.begun = begun
        """Whether part of a response had arrived."""


class ResponseHead(NamedTuple):
    """Status and headers of a backend's response."""

    status: int
    headers: list[Header]
    """Names in the case in which they came."""
    bodiless: bool

    def first(self, name: bytes) -> bytes:
        return next((value for each, value in self.headers if each.lower() == name), b"")


class BackendConnection(asyncio.Protocol):
    """Sends the head of a request and parses its response; bodies go through as they come."""

    def __init__(self, server_name: str, address: str) -> None:
        self.address = address
        self.on_lost: Callable[[BackendConnection], None] | None = None
        self.idle_since = 0.0
        """Set by the pool."""
        self._server_name = server_name
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._reset()

    def _reset(self) -> None:
        self.on_writable: Callable[[], None] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._head: asyncio.Future[ResponseHead] | None = None
        self._headers: list[Header] = []
        self._head_size = 0
        self._is_head_request = False
        self._begun = self._head_is_read = self._complete = self._tunnel = False
        self._reusable = False
        self._first_line = b""
        self._sink: ByteSink | None = None
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._failure: BackendFailed | None = None

    @property
    def reusable(self) -> bool:
        transport = self._transport
        return self._reusable and transport is not None and not transport.is_closing()

    # --- the request ---------------------------------------------------------------------

    def begin(self, head: bytes, *, bodiless: bool = False) -> asyncio.Future[ResponseHead]:
        """Send the head of a request. The future fails with ``BackendFailed``. ``bodiless``: the
        response to a HEAD has no body, whatever its headers say."""
        self._reset()
        self._is_head_request = bodiless
        self._parser = httptools.HttpResponseParser(self)
        self._head = asyncio.get_running_loop().create_future()
        if self._transport is None:
            self._fail(BackendFailed(dial_errors.closed_without_answer().text))
        else:
            self._transport.write(head)
        return self._head

    async def exchange(self, head: bytes, *, bodiless: bool = False) -> ResponseHead:
        """Send a request without a body. Raises ``BackendFailed``; the connection is then
        closed."""
        try:
            return await self.begin(head, bodiless=bodiless)
        except BaseException:
            self.abort()
            raise

    def send(self, data: bytes) -> bool:
        """Send part of a body. Returns False while the backend is slow; ``on_writable`` is called
        when it can take more."""
        if self._transport is not None:
            self._transport.write(data)
        return not self._paused

    # --- the response --------------------------------------------------------------------

    def attach(self, sink: ByteSink) -> None:
        """Pass the body to ``sink``: what has arrived at once, the rest as it comes."""
        self._sink = sink
        self._flush()

    def resume(self) -> None:
        """The sink can take more."""
        self._flush()
        if self._transport is not None and not self._waiting:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close at once. An orderly TLS shutdown would wait for a server that may hang."""
        self._reusable = False
        self._sink = None
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        sink = self._sink
        while sink is not None and self._waiting:
            data = self._waiting.pop(0)
            self._waiting_size -= len(data)
            if not sink.take(data):
                return
            sink = self._sink
        if sink is None or self._waiting:
            return
        if self._complete:
            self._sink = None
            sink.end()
        elif self._failure is not None:
            self._sink = None
            sink.broken(self._failure)

    def _arrived(self, data: bytes) -> None:
        if self._sink is not None and not self._waiting:
            if not self._sink.take(data) and self._transport is not None:
                self._transport.pause_reading()
            return
        self._waiting.append(data)
        self._waiting_size += len(data)
        if self._waiting_size > _FULL and self._transport is not None:
            self._transport.pause_reading()

    # --- asyncio -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=limits.WRITE_BUFFER)

    def data_received(self, data: bytes) -> None:
        if self._tunnel:
            self._arrived(data)
            return
        parser = self._parser
        if parser is None or self._complete:
            self.abort()  # unrequested data
            return
        if not self._begun:
            self._begun, self._first_line = True, data[:_SHOWN].splitlines()[0]
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._tunnel = self._head_is_read
            if self._tunnel and (rest := data[upgrade.args[0] :]):
                self._arrived(rest)
        except httptools.HttpParserError:
            self._spoilt()
            return
        self._limit_head(len(data))
        if self._complete:
            self._flush()

    def _limit_head(self, size: int) -> None:
        if not self._head_is_read:
            self._head_size += size
            if self._head_size > limits.MAX_HEAD:
                self._spoilt()

    def _spoilt(self) -> None:
        """What came is not HTTP: a response that was complete before it counts."""
        self._reusable = False
        if self._complete:
            self._flush()
        else:
            told = "" if self._head_is_read else f" {go_quote(self._first_line.decode('latin-1'))}"
            self._fail(BackendFailed(dial_errors.malformed_answer().text + told, begun=True))
        self.abort()

    def eof_received(self) -> None:
        self._ended(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._ended(error)
        if self.on_lost is not None:
            self.on_lost(self)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self.on_writable is not None:
            self.on_writable()

    def _ended(self, error: Exception | None) -> None:
        if self._parser is None or self._complete or self._failure is not None:
            return
        self._reusable = False
        framed = any(
            name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self._headers
        )
        if self._head_is_read and error is None and (self._tunnel or not framed):
            self._complete = True
            self._flush()
            return
        if self._head_is_read:
            self._fail(BackendFailed("unexpected EOF", begun=True))
            return
        problem = error if isinstance(error, OSError) else None
        told = dial_errors.lost_connection(self._server_name, self.address, problem)
        self._fail(BackendFailed(told.text, begun=self._begun))

    def _fail(self, error: BackendFailed) -> None:
        if self._failure is None:
            self._failure = error
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
            self._head.exception()  # retrieved: nothing may wait for it any more
        self._flush()

    # --- httptools -----------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_is_read:  # trailers are not passed on
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200 and status != _SWITCHING_PROTOCOLS:
            return  # an interim response such as "100 Continue"; the final one follows
        self._head_is_read = True
        bodiless = self._is_head_request or status in (204, 304)
        if self._head is not None and not self._head.done():
            self._head.set_result(ResponseHead(status, self._headers, bodiless))
        if self._is_head_request:
            self._complete = True  # and not reusable: the parser may wait for a body

    def on_body(self, data: bytes) -> None:
        if not self._is_head_request:
            self._arrived(data)

    def on_message_complete(self) -> None:
        if not self._head_is_read:
            self._headers = []
            return
        assert self._parser is not None
        if self._parser.should_upgrade():
            return
        self._complete = True
        self._reusable = self._parser.should_keep_alive() and not self._is_head_request


async def open_connection(
    dialer: Dialer, target: HostPort, server_name: str, tls: Callable[[], ssl.SSLContext]
) -> BackendConnection:
    """Open a TLS connection to a server whose certificate names ``server_name``. Raises
    ``BackendFailed``, and what ``tls`` raises."""
    try:
        made, address = await dialer.dial(*target)
    except NotConnected as error:
        raise BackendFailed(error.explained.text) from error
    try:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: BackendConnection(server_name, address),
            sock=made,
            ssl=tls(),
            server_hostname=server_name,
        )
    except OSError as error:
        told = dial_errors.lost_connection(server_name, address, error)
        raise BackendFailed(told.text) from error
    except BaseException:
        made.close()
        raise
    return connection
