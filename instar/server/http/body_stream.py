"""Request body that is passed on while it is received, with back pressure on the client.

``http1_request.py`` makes one for a request to a path that is proxied, and hands the request over
before its body has arrived; ``server/aggregation`` reads it. What follows a request that changes
the protocol (a watch over WebSocket) is such a body, too. ``StreamedPaths`` says which paths these
are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from instar.base import limits
from instar.base.errors import RequestTooLarge

_FULL = limits.WRITE_BUFFER
"""Bytes that wait to be read; above it the client's connection is not read."""


class StreamedPaths:
    """Decides by its target whether the body of a request is streamed."""

    __slots__ = ("upgradable", "wanted")

    def __init__(self) -> None:
        self.wanted: Callable[[bytes], bool] | None = None
        """Given the target of a request; None while no body is streamed."""
        self.upgradable: Callable[[bytes], bool] | None = None
        """Whether a request for the target may change the protocol: what follows its head is then
        streamed. None where no protocol is known but HTTP."""

    def streams(self, target: bytes, *, upgrade: bool) -> bool:
        if self.wanted is not None and self.wanted(target):
            return True
        return upgrade and self.upgradable is not None and self.upgradable(target)


class BodySource(Protocol):
    """The connection that a body comes from."""

    def pause_body(self) -> None: ...

    def resume_body(self) -> None: ...

    def abort(self) -> None: ...


class ByteSink(Protocol):
    """Takes the bytes of a body in order."""

    def take(self, data: bytes) -> bool:
        """Return False to pause; the sink's owner calls ``resume`` of the source to go on."""
        ...

    def end(self) -> None: ...

    def broken(self, error: Exception) -> None:
        """The body ended too early."""
        ...


class BodyStream:
    """Bytes of one body, or of a connection that has changed its protocol."""

    __slots__ = ("_ended", "_failed", "_pieces", "_sink", "_size", "_source", "_unwanted")

    def __init__(self, source: BodySource) -> None:
        self._source: BodySource | None = source
        self._sink: ByteSink | None = None
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._ended = self._failed = False
        self._unwanted = -1
        """Bytes thrown away since the response was sent; -1: they are wanted."""

    @property
    def complete(self) -> bool:
        """Whether all of it has been received."""
        return self._ended

    # --- from the connection -------------------------------------------------------------

    def push(self, data: bytes) -> None:
        if self._unwanted >= 0:
            self._unwanted += len(data)
            if self._unwanted > limits.MAX_BODY and self._source is not None:
                self._source.abort()
            return
        if self._sink is not None and not self._pieces:
            if not self._sink.take(data) and self._source is not None:
                self._source.pause_body()
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _FULL and self._source is not None:
            self._source.pause_body()

    def end(self) -> None:
        self._ended, self._source = True, None
        self._flush()

    def fail(self) -> None:
        """The client has disconnected before the end."""
        self._failed, self._source = not self._ended, None
        self._flush()

    def discard(self) -> None:
        """The response was sent: the rest of the body is not needed, but the connection can serve
        another request after it."""
        if self._unwanted < 0:
            self._unwanted, self._size, self._sink = 0, 0, None
            self._pieces.clear()
            self._listen()

    # --- from the handler ----------------------------------------------------------------

    def attach(self, sink: ByteSink) -> None:
        """Pass the body to ``sink``: what has arrived at once, the rest as it comes."""
        self._sink = sink
        self._flush()

    def resume(self) -> None:
        """The sink can take more."""
        self._flush()
        if not self._pieces:
            self._listen()

    async def gather(self) -> bytes:
        """The whole body, for a handler that needs it. Raises ``RequestTooLarge``."""
        whole = _Whole()
        self.attach(whole)
        return await whole.body

    def _flush(self) -> None:
        sink = self._sink
        while sink is not None and self._pieces:
            data = self._pieces.popleft()
            self._size -= len(data)
            if not sink.take(data):
                return
            sink = self._sink
        if sink is None or not (self._ended or self._failed):
            return
        self._sink = None
        if self._ended:
            sink.end()
        else:
            sink.broken(ConnectionResetError("the client closed the connection"))

    def _listen(self) -> None:
        if self._source is not None:
            self._source.resume_body()


class _Whole:
    """Sink that holds a body of limited size."""

    def __init__(self) -> None:
        self.body: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pieces: list[bytes] = []
        self._size = 0

    def take(self, data: bytes) -> bool:
        self._size += len(data)
        if self._size > limits.MAX_BODY:
            self.broken(RequestTooLarge(f"limit is {limits.MAX_BODY}"))
        else:
            self._pieces.append(data)
        return True

    def end(self) -> None:
        if not self.body.done():
            self.body.set_result(b"".join(self._pieces))

    def broken(self, error: Exception) -> None:
        if not self.body.done():
            self.body.set_exception(error)
