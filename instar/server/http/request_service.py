"""What all connections of a port share: the handler, the limits, the headers of every response.

``protocols.py`` makes one for a port; each connection, HTTP/1.1 or HTTP/2, refers to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from instar.base import limits
from instar.server.http.body_stream import StreamedPaths
from instar.server.http.connections import ConnectionSet
from instar.server.http.handler_types import Handler, PeerOf, no_peer
from instar.server.http.http_head import header_lines
from instar.server.http.loop_budget import LoopBudget
from instar.server.http.messages import Header, Request, Response


class RequestService(ConnectionSet):
    """The open connections of a port, with the handler that answers their requests."""

    def __init__(
        self,
        handler: Handler,
        refused: Callable[[Request], Response] | None = None,
        every_answer: Iterable[Header] = (),
        peer_of: PeerOf = no_peer,
        most_streams: int = limits.MAX_STREAMS,
    ) -> None:
        super().__init__()
        self.turns = LoopBudget()
        self.handler = handler
        self.peer_of = peer_of
        """The user of the client certificate."""
        self.every_answer = tuple(every_answer)
        self.always = header_lines(self.every_answer)
        """The headers of every response as HTTP/1.1 writes them."""
        self.refused = refused or (lambda request: Response(503))
        """Answers a request if its own response would exceed the memory limit."""
        self.most_streams = most_streams
        """Requests that one HTTP/2 connection may have at once."""
        self.streamed = StreamedPaths()
        self._chunk_of = self._chunk = b""

    def chunk(self, data: bytes) -> bytes:
        """The data as an HTTP chunk; made once where many connections send the same."""
        if data is not self._chunk_of:
            self._chunk_of, self._chunk = data, b"%x\r\n%b\r\n" % (len(data), data)
        return self._chunk
