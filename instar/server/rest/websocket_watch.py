"""Watch over a WebSocket: each event is a message, text for JSON, and binary for protobuf and
CBOR.

``verbs.py`` calls it where the client of a watch asks to change the protocol. The events come from
a ``WatchFeed`` as for any other watch.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.kube.api.encoding.cbor_reading import items
from instar.server.http.messages import Feed, Outlet, Request, Response
from instar.server.http.websocket import (
    BINARY,
    NORMAL,
    TEXT,
    ClientFrames,
    accepted_handshake,
    close_frame,
    frame,
    refused_handshake,
)
from instar.server.rest.negotiate import JSON, PROTOBUF


def websocket_watch(request: Request, feed: Feed, media: str) -> Response:
    """Answer the handshake; the events follow. A refused one ends the watch."""
    refused = refused_handshake(request)
    if refused is not None or request.incoming is None:
        feed.close()
        return refused or Response(400, bare=True)
    response = accepted_handshake(request)
    response.stream = _WebSocketFeed(feed, request, media)
    return response


class _WebSocketFeed:
    """The outlet of a watch and the feed of a connection: makes messages of events."""

    def __init__(self, feed: Feed, request: Request, media: str) -> None:
        self._feed, self._incoming, self._media = feed, request.incoming, media
        self._outlet: Outlet | None = None

    # --- the connection's side: Feed -------------------------------------------------------

    def open(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._feed.open(self)
        if self._incoming is not None:
            self._incoming.attach(ClientFrames(outlet.send, self._client_ended))

    def resume(self) -> None:
        self._feed.resume()

    def close(self) -> None:
        self._outlet = None
        self._feed.close()

    # --- the watch's side: Outlet ----------------------------------------------------------

    def send(self, data: bytes) -> bool:
        """Send events; a watch joins several to one write."""
        outlet = self._outlet
        if outlet is None:
            return True
        kind = TEXT if self._media == JSON else BINARY
        return outlet.send(b"".join([frame(kind, each) for each in _events(data, self._media)]))

    def backlog(self) -> int:
        return 0 if self._outlet is None else self._outlet.backlog()

    def finish(self) -> None:
        self._end(NORMAL)

    def abort(self) -> None:
        if self._outlet is not None:
            self._outlet.abort()

    # --- the client's side -----------------------------------------------------------------

    def _client_ended(self, code: int) -> None:
        self._feed.close()
        self._end(code)

    def _end(self, code: int) -> None:
        outlet, self._outlet = self._outlet, None
        if outlet is not None:
            if code:
                outlet.send(close_frame(code))
            outlet.finish()


def _events(data: bytes, media: str) -> Iterator[bytes]:
    if media == JSON:
        return _lines(data)
    return _lengths(data) if media == PROTOBUF else items(data)


def _lines(data: bytes) -> Iterator[bytes]:
    """JSON events, each with its newline, as upstream sends them."""
    return iter(data.splitlines(keepends=True))


def _lengths(data: bytes) -> Iterator[bytes]:
    """Protobuf events without the lengths before them: a message has its own."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        yield data[at + 4 : at + 4 + size]
        at += 4 + size
