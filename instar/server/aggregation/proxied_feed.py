"""Streams of a proxied request: the response to the client, the body to the backend.

``proxy.py`` and ``kubelets.py`` make them. Both push what they get at once and pause their source
while the other side is slow, so that neither holds more than a connection's buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from instar.server.aggregation.backend_connection import BackendConnection, ResponseHead
from instar.server.http.body_stream import BodyStream
from instar.server.http.messages import Outlet, Request


class Upload:
    """Sink of the client's body: sends it to the backend."""

    def __init__(self, connection: BackendConnection, *, chunked: bool) -> None:
        self._connection, self._chunked = connection, chunked

    def take(self, data: bytes) -> bool:
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        return self._connection.send(data)

    def end(self) -> None:
        if self._chunked:
            self._connection.send(b"0\r\n\r\n")

    def broken(self, error: Exception) -> None:
        """The client has disconnected: the backend cannot get the rest."""
        self._connection.abort()


async def exchange_streamed(
    connection: BackendConnection, request: Request, head: bytes, *, chunked: bool
) -> ResponseHead:
    """Send head and body of a request, and wait for the head of the response, which may come before
    the end of the body. Raises ``BackendFailed``."""
    stream = request.incoming
    try:
        waiting = connection.begin(head, bodiless=request.method == "HEAD")
        if stream is not None:
            connection.on_writable = stream.resume
            stream.attach(Upload(connection, chunked=chunked))
        elif request.body:
            connection.send(request.content())
        return await waiting
    except BaseException:
        connection.abort()
        raise


class ProxiedFeed:
    """Response of a backend on its way to the client."""

    def __init__(
        self,
        connection: BackendConnection,
        upload: BodyStream | None,
        *,
        seconds: float,
        give_back: Callable[[], None],
        closed: Callable[[], None],
    ) -> None:
        """``seconds``: how long it may take; 0 is no limit."""
        self._connection, self._upload = connection, upload
        self._give_back, self._closed = give_back, closed
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._outlet: Outlet | None = None
        self._over = False

    # --- the client's side: Feed -----------------------------------------------------------

    def open(self, outlet: Outlet) -> None:
        self._outlet = outlet
        if self._seconds:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, self._expire)
        self._connection.attach(self)

    def resume(self) -> None:
        if not self._over:
            self._connection.resume()

    def close(self) -> None:
        """The client has disconnected, or the response is not wanted."""
        if self._finish():
            self._connection.abort()

    # --- the backend's side: ByteSink ------------------------------------------------------

    def take(self, data: bytes) -> bool:
        return self._outlet is None or self._outlet.send(data)

    def end(self) -> None:
        if not self._finish():
            return
        if self._upload is None or self._upload.complete:
            self._give_back()
        else:
            self._connection.abort()
        if self._outlet is not None:
            self._outlet.finish()

    def broken(self, error: Exception) -> None:
        """The rest does not come: closing tells the client that the response is incomplete."""
        if self._finish() and self._outlet is not None:
            self._outlet.abort()

    # --- this server -----------------------------------------------------------------------

    def cut(self) -> None:
        """End a stream in order, so that its client asks again."""
        if self._finish():
            self._connection.abort()
            if self._outlet is not None:
                self._outlet.finish()

    def _expire(self) -> None:
        if self._finish():
            self._connection.abort()
            if self._outlet is not None:
                self._outlet.abort()

    def _finish(self) -> bool:
        """Return whether it was not over yet."""
        if self._over:
            return False
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        self._closed()
        return True
