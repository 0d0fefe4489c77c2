"""A request that is being received on an HTTP/2 stream: its head, the body so far, its limits.

``connection.py`` makes one for each stream and drops it when the request is complete, so that a
stream that only sends, such as a watch, has none.
"""

from __future__ import annotations

from math import inf

from instar.base import limits
from instar.server.http.body_stream import BodyStream
from instar.server.http.http2.heads import MalformedRequest, RequestHead
from instar.server.http.messages import Request, parse_query


class IncomingRequest:
    """The request of one stream until its end is received."""

    __slots__ = (
        "_head",
        "_paused",
        "_pieces",
        "_received",
        "_room",
        "_size",
        "deadline",
        "held",
        "stream",
    )

    def __init__(self, head: RequestHead, window: int, deadline: float) -> None:
        self._head = head
        self._pieces: list[bytes] = []
        self._size = 0
        self.held = 0
        """Bytes of the body that are in memory."""
        self._room = window
        """Bytes that the client may send before the next window update."""
        self._received = 0
        """Bytes since the last one."""
        self.deadline = deadline
        self.stream: BodyStream | None = None
        """The body, where it is passed on while it is received."""
        self._paused = False

    @property
    def waits_for_continue(self) -> bool:
        return self._head.headers.get(b"expect", b"").lower() == b"100-continue"

    def receive(self, size: int) -> int:
        """Count a frame. Returns by how much to widen the window; -1 if it was exceeded."""
        self._room -= size
        self._received += size
        if self._room < 0:
            return -1
        return 0 if self._room >= self._received else self.widen()

    def widen(self) -> int:
        """Return by how much to widen the window."""
        if self._paused:
            return 0
        more, self._received = self._received, 0
        self._room += more
        return more

    def pause(self, paused: bool) -> None:
        """Stop widening the window, or go on."""
        self._paused = paused

    def add(self, data: bytes) -> None:
        """Add to the body; a body above the limit is not kept. Raises ``MalformedRequest``."""
        self._size += len(data)
        if 0 <= self._head.expected < self._size:
            raise MalformedRequest("more body than announced")
        if self.stream is not None:
            self.stream.push(data)
        elif self._size > limits.MAX_BODY:
            self._pieces.clear()
            self.held = 0
        else:
            self._pieces.append(data)
            self.held = self._size

    def check_length(self) -> None:
        """The body has ended. Raises ``MalformedRequest``."""
        if self._head.expected not in (-1, self._size):
            raise MalformedRequest("less body than announced")

    def pass_on(self, stream: BodyStream) -> Request:
        """The request, before its body, which goes into the stream."""
        self.stream, self.deadline = stream, inf
        request = self.request()
        request.incoming = stream
        return request

    def request(self) -> Request:
        """The request with the body that was received."""
        head = self._head
        path, _, query = head.target.partition(b"?")
        return Request(
            head.method,
            path.decode("latin-1"),
            parse_query(query) if query else {},
            head.headers,
            b"".join(self._pieces) if self._pieces else b"",
            self._size > limits.MAX_BODY,
            head.repeated,
            uri=head.target,
        )
