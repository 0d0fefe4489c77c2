"""Reads requests out of bytes, within limits. Knows no sockets, and not who answers."""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import Protocol

import httptools

from instar.base import limits
from instar.server.http.http_head import target
from instar.server.rest.request import Request, parse_query

_METERED = 16 << 10
"""Bytes of bodies looked at together where they are counted."""
_AT_ONCE = 4 << 10
"""Bytes looked at together where they may be many requests."""
_LARGE = 64 << 10
"""Bodies above this are counted together with all others."""


class RequestReceiver(Protocol):
    """The connection's side."""

    def requested(self, request: Request, keep_alive: bool) -> None: ...

    def full(self) -> bool:
        """Whether it has enough to answer: what else came is left for later."""
        ...

    def refuse(self, status: int, text: bytes) -> None:
        """Answer so and close: what follows cannot be told from what was sent."""
        ...

    def encourage(self) -> None:
        """The client waits to be told that its body is welcome."""
        ...

    def takes(self, size: int) -> bool:
        """Whether there is room for so much more of a large body."""
        ...

    def drops(self) -> None:
        """The body taken so far is not kept."""
        ...


class RequestReader:
    """One connection's requests, one after the other. The ``on_`` methods are httptools'."""

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
        "_url",
        "deadline",
        "over",
        "reading",
    )

    def __init__(self, owner: RequestReceiver) -> None:
        self.reading = False
        """Whether a request has begun and not ended."""
        self.deadline = inf
        """By when what is being read must have come."""
        self._body_allowed_for = False
        self.over = False
        """Whatever comes is not read any more."""
        self._owner = owner
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
        """What is left of it: the owner has enough for now."""
        rest = b""
        if self.reading or len(data) > _AT_ONCE:
            rest = self._feed_metered(data)
        else:
            self._parse(data)
        if self.reading:
            self._keep_time()
        return rest

    def _keep_time(self) -> None:
        """Most requests come whole, and need no deadline."""
        if self.deadline == inf:
            self.deadline = monotonic() + limits.HEAD_SECONDS
            self._body_allowed_for = False
        if not self._in_head and not self._body_allowed_for:
            self.deadline += limits.BODY_SECONDS
            self._body_allowed_for = True

    def _feed_metered(self, data: bytes) -> bytes:
        """Counts what comes without being content: heads, trailers and chunk sizes have no end
        of their own, and the parser tells of them only when they are whole."""
        begin = 0
        while begin < len(data) and not self.over:
            if self._owner.full():
                return data[begin:]
            in_body = self.reading and not self._in_head
            piece = data[begin : begin + (_METERED if in_body else _AT_ONCE)]
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
            # The request is served as if it had not asked; what follows is HTTP as before.
            self._parser = None
            rest = data[upgrade.args[0] :]
            if rest:
                self._parse(rest)
        except httptools.HttpParserError:
            self._refuse(400, b"400 Bad Request\n")

    def _refuse(self, status: int, text: bytes) -> None:
        if not self.over:
            self.over = True
            self._owner.refuse(status, text)

    def rest(self) -> None:
        """Not much is expected for a while: the parser is a kilobyte, and made again if need be."""
        if not self.reading and not self.over:
            self._parser = None

    def end(self) -> None:
        """Nothing more comes. The parser and the owner hold this as it holds them: so many
        connections would wait for the collector."""
        self.over = True
        del self._owner, self._parser

    # --- httptools -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.reading = True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what comes behind the body is nobody's credential
            name = name.lower()
            if self._headers.setdefault(name, value) is not value:
                if self._repeated is None:
                    self._repeated = []
                self._repeated.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        headers = self._headers
        assert self._parser is not None
        if self._parser.should_upgrade() and (
            b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
        ):
            # The parser would take the body for the next request.
            self._refuse(400, b"400 Bad Request: an upgrade has no body\n")
        elif b"expect" in headers and headers[b"expect"].lower() == b"100-continue":
            self._owner.encourage()

    def on_body(self, data: bytes) -> None:
        self._overhead = 0
        self._size += len(data)
        if self._size > limits.MAX_BODY:
            self._body = None
            self._owner.drops()
            return
        if self._body is None:
            self._body = []
        self._body.append(data)
        if self._size > _LARGE and not self._owner.takes(len(data)):
            self._refuse(503, b"503 Service Unavailable: too many large bodies at once\n")

    def on_message_complete(self) -> None:
        if self.over:
            self._expect_next()
            return
        assert self._parser is not None
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
