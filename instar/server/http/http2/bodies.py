"""Request bodies of one HTTP/2 connection: its receive window, and the memory that bodies hold.

``connection.py`` has one and reports each frame of data to it. The window of a stream is in
``incoming.py``.
"""

from __future__ import annotations

from instar.base import limits
from instar.base.http2 import frames
from instar.base.http2.frames import ProtocolError
from instar.server.http.http2.stream import ServerHttp2Stream
from instar.server.http.request_service import RequestService

_LARGE_BODY = 64 << 10
"""Bodies of one connection above this size count towards the limit of all connections together."""


class ConnectionBodies:
    """Counts the bytes that a client sends on all streams."""

    __slots__ = ("_held", "_received", "_room", "_service")

    def __init__(self, service: RequestService) -> None:
        self._service = service
        self._room = limits.CONNECTION_WINDOW
        """Bytes that the client may send before the next window update."""
        self._received = 0
        self._held = 0

    def receive(self, size: int) -> int:
        """Count a frame. Return by how much to widen the window. Raises ``ProtocolError``."""
        self._room -= size
        if self._room < 0:
            raise ProtocolError(frames.FLOW_ERROR, "more than was allowed")
        self._received += size
        if self._received <= limits.CONNECTION_WINDOW // 2:
            return 0
        more, self._received = self._received, 0
        self._room += more
        return more

    def hold(self, stream: ServerHttp2Stream, held: int) -> bool:
        """Count the bytes of a stream's body that are in memory. Return whether they may be."""
        more = held - stream.body
        self._held += more
        stream.body = held
        return self._held <= _LARGE_BODY or self._service.receives(stream, more)

    def release(self, stream: ServerHttp2Stream) -> None:
        self._held -= stream.body
        stream.body = 0
        self._service.received(stream)
