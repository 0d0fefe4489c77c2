"""Request reader: parses HTTP/1.1 requests out of bytes, within limits of size and time.

Each ``http1.py`` connection has a reader and gets its requests through ``RequestReceiver``.
httptools parses; the connection has the socket and calls the handler.
"""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import Protocol

import httptools

from instar.base import limits
from instar.server.http.body_stream import BodyStream, StreamedPaths
from instar.server.http.http_head import target
from instar.server.http.messages import Request, parse_query

_BODY_PIECE = 16 << 10
"""Bytes of a body that are parsed together while their number is checked."""
_PIPELINE_PIECE = 4 << 10
"""Bytes parsed together where they may contain many requests."""
_LARGE_BODY = 64 << 10
"""Bodies above this size count towards the limit of all connections together."""


class RequestReceiver(Protocol):
    """The connection that a reader belongs to."""

    def requested(self, request: Request, keep_alive: bool) -> None: ...

    def full(self) -> bool:
        """Whether enough requests wait: the rest of the data is parsed later."""
        ...

    def refuse(self, status: int, text: bytes) -> None:
        """Respond with this error and close: the following bytes cannot be parsed reliably."""
        ...

    def send_100_continue(self) -> None:
        """Send ``100 Continue``: the client waits for it before it sends the body."""
        ...

    def takes(self, size: int) -> bool:
        """Whether this many more bytes of a large body may be held."""
        ...

    def drops(self) -> None:
        """The body received so far was discarded."""
        ...

    def pause_body(self) -> None: ...

    def resume_body(self) -> None: ...

    def abort(self) -> None: ...


class RequestReader:
    """Parses the requests of one connection. httptools calls the ``on_`` methods."""

    __slots__ = (
        "_body",
        "_body_allowed_for",
        "_headers",
        "_in_head",
        "_overhead",
        "_owner",
        "_parser",
        "_repeated",
        "_size",
        "_streamed",
        "_tunnel",
        "_url",
        "deadline",
        "over",
        "reading",
        "stream",
    )

    def __init__(self, owner: RequestReceiver, streamed: StreamedPaths | None = None) -> None:
        self.reading = False
        """Whether a request has begun and not ended."""
        self.deadline = inf
        """The time by which the request must be complete."""
        self._body_allowed_for = False
        self.over = False
        """Whether further data is ignored."""
        self.stream: BodyStream | None = None
        """The body that is received, where it is passed on meanwhile."""
        self._owner = owner
        self._streamed = StreamedPaths() if streamed is None else streamed
        self._tunnel = False
        self._parser: httptools.HttpRequestParser | None = None
        self._expect_next()

    def _expect_next(self) -> None:
        self.reading = False
        self.deadline = inf
        self._in_head = True
        self._overhead = 0
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._repeated: list[tuple[bytes, bytes]] | None = None
        self._body: list[bytes] | None = None
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """Parse data. Returns the rest that is left because the connection has enough requests."""
        rest = b""
        if self.reading or len(data) > _PIPELINE_PIECE:
            rest = self._feed_metered(data)
        else:
            self._parse(data)
        if self.reading:
            self._keep_time()
        return rest

    def _keep_time(self) -> None:
        """Set a deadline; most requests arrive in one piece and need none."""
        if self.deadline == inf:
            self.deadline = monotonic() + limits.HEAD_SECONDS
            self._body_allowed_for = False
        if not self._in_head and not self._body_allowed_for:
            self.deadline += limits.BODY_SECONDS
            self._body_allowed_for = True

    def _feed_metered(self, data: bytes) -> bytes:
        """Parse in pieces and limit what is not content: heads, trailers and chunk sizes may be
        endless, and the parser reports them only when they are complete."""
        begin = 0
        while begin < len(data) and not self.over:
            if self._tunnel and self.stream is not None:
                self.stream.push(data[begin:])
                break
            if self._owner.full():
                return data[begin:]
            in_body = self.reading and not self._in_head
            piece = data[begin : begin + (_BODY_PIECE if in_body else _PIPELINE_PIECE)]
            begin += len(piece)
            self._overhead += len(piece)
            self._parse(piece)
            if self._overhead > limits.MAX_HEAD and self.reading:
                self._refuse(431, b"431 Request Header Fields Too Large\n")
        return b""

    def _parse(self, data: bytes) -> None:
        if self.over:
            return
        if self._parser is None:
            self._parser = httptools.HttpRequestParser(self)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._parser = None
            rest = data[upgrade.args[0] :]
            if self.stream is not None:
                self.reading = self._tunnel = True
                if rest:
                    self.stream.push(rest)
            elif rest:
                # The upgrade is ignored: the request is served, and HTTP/1.1 goes on.
                self._parse(rest)
        except httptools.HttpParserError:
            self._refuse(400, b"400 Bad Request\n")

    def _refuse(self, status: int, text: bytes) -> None:
        if not self.over:
            self.over = True
            self._owner.refuse(status, text)

    def rest(self) -> None:
        """Free the parser (a kilobyte) of an idle connection; it is made again if needed."""
        if not self.reading and not self.over:
            self._parser = None

    def end(self) -> None:
        """The connection has closed. Break the reference cycles with parser and connection, so that
        no garbage collection is needed."""
        self.over = True
        if self.stream is not None:
            self.stream.fail()
            self.stream = None
        del self._owner, self._parser

    # --- httptools -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.reading = True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # trailers are ignored: they could hold a credential
            name = name.lower()
            if self._headers.setdefault(name, value) is not value:
                if self._repeated is None:
                    self._repeated = []
                self._repeated.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        headers = self._headers
        assert self._parser is not None
        upgrade = self._parser.should_upgrade()
        if upgrade and (
            b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
        ):
            # The parser would parse the body as the next request.
            self._refuse(400, b"400 Bad Request: an upgrade has no body\n")
            return
        if (upgrade or self._streamed.wanted is not None) and self._streamed.streams(
            target(self._url), upgrade=upgrade
        ):
            self._begin_stream(headers)
        if b"expect" in headers and headers[b"expect"].lower() == b"100-continue":
            self._owner.send_100_continue()

    def _begin_stream(self, headers: dict[bytes, bytes]) -> None:
        """Hand the request over before its body, if it has one."""
        assert self._parser is not None
        sized = headers.get(b"content-length", b"0") != b"0"
        if not (sized or b"transfer-encoding" in headers or self._parser.should_upgrade()):
            return
        self.stream = BodyStream(self._owner)
        uri = target(self._url)
        path, _, query = uri.partition(b"?")
        request = Request(
            self._parser.get_method().decode(),
            path.decode("latin-1"),
            parse_query(query),
            headers,
            repeated=self._repeated or (),
            uri=uri,
            incoming=self.stream,
        )
        keep_alive = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        self._owner.requested(request, keep_alive)

    def on_body(self, data: bytes) -> None:
        self._overhead = 0
        if self.stream is not None:
            self.stream.push(data)
            return
        self._size += len(data)
        if self._size > limits.MAX_BODY:
            self._body = None
            self._owner.drops()
            return
        if self._body is None:
            self._body = []
        self._body.append(data)
        if self._size > _LARGE_BODY and not self._owner.takes(len(data)):
            self._refuse(503, b"503 Service Unavailable: too many large bodies at once\n")

    def on_message_complete(self) -> None:
        if self.over:
            self._expect_next()
            return
        assert self._parser is not None
        if self.stream is not None:
            if not self._parser.should_upgrade():
                self.stream.end()
                self.stream = None
            self._expect_next()
            return
        uri = target(self._url)
        path, _, query = uri.partition(b"?")
        request = Request(
            self._parser.get_method().decode(),
            path.decode("latin-1"),
            parse_query(query) if query else {},
            self._headers,
            b"".join(self._body) if self._body else b"",
            self._size > limits.MAX_BODY,
            self._repeated or (),
            uri=uri,
        )
        self._expect_next()
        self._owner.requested(request, self._parser.should_keep_alive())
