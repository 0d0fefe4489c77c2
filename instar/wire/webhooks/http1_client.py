"""HTTP/1.1 client connection: one request at a time.

Used by ``https.py`` and ``keepalive.py``. The client is hand-written, because each conversion of a
write waits for the answer, and a general client library took longer than the rest of the write. The
caller sets deadlines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from instar.wire.webhooks.http1_response import AnswerFailed, AnswerReader, CutShort, HttpResponse

_BUFFERED_BYTES = 64 << 10
"""Bytes of a request that network buffers take, whether the peer reads them or not."""
_SLICE = 4 << 10
"""Packed bytes that one turn of the event loop takes; they may unpack to a thousand times that."""


class ConnectionDied(Exception):
    """The connection ended before there was an answer; ``problem`` None is an orderly end."""

    def __init__(self, address: str, problem: OSError | None, *, begun: bool) -> None:
        super().__init__(str(problem or "closed"))
        self.address = address
        self.problem = problem
        self.begun = begun
        """Whether part of an answer arrived."""


class ClientConnection(asyncio.Protocol):
    """Sends a request, receives its answer, and reports whether it can be reused."""

    def __init__(self, address: str) -> None:
        self.address = address
        """The peer's address, for messages."""
        self.on_lost: Callable[[ClientConnection], None] | None = None
        self.idle_since = 0.0
        """Set by the connection pool."""
        self.transport: asyncio.Transport | None = None
        """None while not connected."""
        self._reader: AnswerReader | None = None
        self._answer: asyncio.Future[HttpResponse] | None = None
        self._sent = 0
        self._later = b""
        """Received bytes that wait for another turn of the loop."""
        self._reusable = False

    @property
    def reusable(self) -> bool:
        """Return whether the last answer left the connection fit for another request."""
        transport = self.transport
        return self._reusable and transport is not None and not transport.is_closing()

    def send(self, request: bytes, reader: AnswerReader) -> asyncio.Future[HttpResponse]:
        """Send a request. The future fails with ``ConnectionDied`` or ``AnswerFailed``."""
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._reusable = False
        if self.transport is None:
            answer.set_exception(ConnectionDied(self.address, None, begun=False))
        else:
            self._reader = reader
            self._sent = len(request)
            self.transport.write(request)
        return answer

    def abort(self) -> None:
        """Close at once. An orderly TLS shutdown would wait for a server that may hang."""
        self._reusable = False
        if self.transport is not None:
            self.transport.abort()

    # --- asyncio -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but not the base class.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._later:
            self._later += data
        else:
            self._take(data)

    def eof_received(self) -> None:
        self._take_the_rest()
        self._ended(None)
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._take_the_rest()
        self.transport = None
        self._ended(error if isinstance(error, OSError) else None)
        if self.on_lost is not None:
            self.on_lost(self)

    # --- one exchange --------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        """Feed the reader: all at once, or a slice of what may unpack to much more."""
        reader = self._reader
        if reader is None:  # unrequested data
            self.abort()
            return
        if len(data) <= _SLICE or reader.is_plain:
            self._feed(reader, data)
            return
        self._feed(reader, data[:_SLICE])
        if self._reader is not reader or self.transport is None:  # failed, or more than an answer
            self.abort()
            return
        self._later = data[_SLICE:]
        self.transport.pause_reading()
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        data, self._later = self._later, b""
        if data and self.transport is not None:
            self.transport.resume_reading()
            self._take(data)

    def _take_the_rest(self) -> None:
        data, self._later = self._later, b""
        if data and self._reader is not None:
            self._feed(self._reader, data)

    def _feed(self, reader: AnswerReader, data: bytes) -> None:
        try:
            if reader.feed(data):
                self._complete(reader)
        except AnswerFailed as error:
            self._fail(error)

    def _ended(self, problem: OSError | None) -> None:
        reader = self._reader
        if reader is None:
            return
        try:
            if problem is None and reader.end():
                self._complete(reader)
            elif reader.head_is_read:
                self._fail(CutShort())
            else:
                self._fail(ConnectionDied(self.address, problem, begun=reader.begun))
        except AnswerFailed as error:
            self._fail(error)

    def _complete(self, reader: AnswerReader) -> None:
        self._reader = None
        answer = reader.answer()
        # A server that rejects a long request may never have read all of it.
        unread = answer.status >= 400 and self._sent > _BUFFERED_BYTES
        self._reusable = reader.reusable and not unread
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _fail(self, error: Exception) -> None:
        self._reader = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        self.abort()
