"""A connection that sends raw bytes and counts answers; it reads no more of HTTP than it must."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from typing import NamedTuple

from tests.fuzz.case import Case
from tests.fuzz.placeholders import Known, is_read, leaked

_BROKEN_SECONDS = 0.1
_STREAM_SECONDS = 0.2
ANSWER_SECONDS = 75.0
"""More than the server's own deadlines."""
_READ = 4 << 20
"""Bytes of answers that are read whole."""
_KEPT = 4000
"""Bytes of an answer that are kept to be judged."""


class Reply(NamedTuple):
    status: int
    body: bytes
    """Of a failure, its beginning; else nothing."""


class Outcome(NamedTuple):
    replies: list[Reply]
    closed: bool
    silent: bool
    """An answer was due and did not come."""
    leaked: bool = False
    """A user was shown what the user may not read."""


class _Stream(asyncio.Protocol):
    """Takes answers apart as they come."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.replies: list[Reply] = []
        self.closed = False
        self.streaming = False
        self.head_only = False
        self.reading = False
        self.seen = bytearray()
        self.wanted = 0
        self.waiter: asyncio.Future[None] | None = None
        self._buffer = bytearray()
        self._status = 0
        self._left = 0
        self._chunked = False
        self._in_body = False
        self._kept = b""
        self._packed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._wake()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self.reading and len(self.seen) < _READ:
            self.seen += data
        while self._in_body or b"\r\n\r\n" in self._buffer:
            if not self._in_body:
                self._begin()
            if not self._consume():
                break
        if len(self.replies) >= self.wanted or self.streaming:
            self._wake()

    def _wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def _begin(self) -> None:
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        self._buffer = bytearray(rest)
        lower = head.lower()
        self._status = int(head[9:12]) if head[:5] == b"HTTP/" and head[9:12].isdigit() else 0
        self._chunked = b"transfer-encoding: chunked" in lower
        self._packed = b"content-encoding: gzip" in lower
        self._left = 0
        at = lower.find(b"content-length: ")
        if at >= 0:
            self._left = int(lower[at + 16 :].partition(b"\r\n")[0])
        if self.head_only or self._status in (204, 304) or self._status < 200:
            self._left, self._chunked = 0, False
        self._in_body, self._kept = True, b""
        self.streaming = self._chunked

    def _consume(self) -> bool:
        """Whether an answer is whole."""
        if len(self._kept) < _KEPT and self._status >= 500:
            self._kept += bytes(self._buffer[: self._left or _KEPT])
        if self._chunked:
            if not self._buffer.endswith(b"0\r\n\r\n"):
                del self._buffer[:-5]
                return False
            self._buffer.clear()
            self.streaming = False
        elif len(self._buffer) < self._left:
            self._left -= len(self._buffer)
            self._buffer.clear()
            return False
        else:
            del self._buffer[: self._left]
        self._in_body = False
        if self._status >= 200 or self._status == 0:
            kept = _unpacked(self._kept) if self._packed else self._kept
            self.replies.append(Reply(self._status, kept[:_KEPT]))
        return True


def _unpacked(data: bytes) -> bytes:
    """Return the beginning of what was packed with gzip; the data as it is if it was not."""
    try:
        return zlib.decompressobj(wbits=31).decompress(data, _KEPT)
    except zlib.error:
        return data


class Connection:
    def __init__(self, address: tuple[str, int], context: ssl.SSLContext, known: Known) -> None:
        self._address, self._context, self._known = address, context, known
        self._stream: _Stream | None = None

    async def send(self, case: Case) -> Outcome:
        stream = await self._ready()
        assert stream.transport is not None
        stream.replies, stream.head_only = [], case.method == b"HEAD"
        stream.wanted = case.answers or 1
        stream.reading = is_read(case.data)
        stream.seen.clear()
        stream.waiter = asyncio.get_running_loop().create_future()
        stream.transport.write(self._known.filled(case.data))
        patience = ANSWER_SECONDS if case.answers else _BROKEN_SECONDS
        timer = asyncio.get_running_loop().call_later(patience, stream._wake)
        await stream.waiter
        timer.cancel()
        if stream.streaming and not stream.closed:
            await asyncio.sleep(_STREAM_SECONDS)
        whole = len(stream.replies) >= case.answers or stream.streaming
        told = bytes(stream.seen)
        if stream.reading:
            self._known.learn(case.data, told)
        outcome = Outcome(
            stream.replies,
            stream.closed,
            not whole and not stream.closed,
            leaked(case.data, told),
        )
        if stream.streaming or not case.answers or outcome.silent:
            self.close()
        return outcome

    def close(self) -> None:
        if self._stream is not None and self._stream.transport is not None:
            self._stream.transport.abort()
        self._stream = None

    async def _ready(self) -> _Stream:
        if self._stream is None or self._stream.closed:
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(ANSWER_SECONDS):
                _, self._stream = await loop.create_connection(
                    _Stream, *self._address, ssl=self._context
                )
        return self._stream
