"""Queue of pipelined requests, which a client sends before earlier ones are answered.

Each ``http1.py`` connection has one queue, of limited size.
"""

from __future__ import annotations

from instar.base import limits
from instar.server.http.messages import Request


class RequestQueue:
    """Pipelined requests of one connection, and data that is not parsed yet."""

    __slots__ = ("_bytes", "_requests", "unread")

    def __init__(self) -> None:
        self.unread = b""
        """Data that was received and not parsed yet."""
        self._requests: list[tuple[Request, bool]] = []
        self._bytes = 0

    def __len__(self) -> int:
        """Number of requests that wait for the response to an earlier one."""
        return len(self._requests)

    @property
    def empty(self) -> bool:
        return not self._requests and not self.unread

    @property
    def full(self) -> bool:
        return len(self._requests) > limits.MAX_PIPELINED or self._bytes > limits.MAX_BODY

    @property
    def listens(self) -> bool:
        """Whether more data may be received."""
        return not self.unread and not self.full

    def add(self, request: Request, keep_alive: bool) -> None:
        self._requests.append((request, keep_alive))
        self._bytes += len(request.body)

    def take(self) -> tuple[Request, bool]:
        request, keep_alive = self._requests.pop(0)
        self._bytes -= len(request.body)
        return request, keep_alive

    def take_unread(self) -> bytes:
        data, self.unread = self.unread, b""
        return data

    def clear(self) -> None:
        self._requests.clear()
        self._bytes, self.unread = 0, b""
