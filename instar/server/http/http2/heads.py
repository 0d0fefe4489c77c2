"""HTTP/2 heads: from the headers of a request to its parts, from a response to a header block.

``connection.py`` reads requests with it, ``stream.py`` writes responses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from instar.base.http2.hpack import STATIC_NAMES, Field, literal
from instar.server.http.http_head import date_value
from instar.server.http.messages import Header, Response

CONTINUE = literal(b":status", b"100")
_STATUS = {
    200: b"\x88",
    204: b"\x89",
    206: b"\x8a",
    304: b"\x8b",
    400: b"\x8c",
    404: b"\x8d",
    500: b"\x8e",
}
"""Entries of HPACK's static table."""
_USUAL = frozenset((b"kubectl-command", b"kubectl-session", b"te", b"traceparent")) | {
    name for name in STATIC_NAMES if name[:1] != b":"
}
"""Names that need not be checked letter by letter."""
_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_PSEUDO = (b":method", b":path", b":scheme", b":authority")
_OF_HTTP1 = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
"""Headers of HTTP/1.1 connections, which HTTP/2 does not have."""
_SIZE = re.compile(rb"[0-9]{1,18}")
_CACHED_BYTES = 256
_KNOWN_HEADERS = 8
"""Sets of headers that are kept for a connection."""
_KNOWN_BYTES = 4096
_Headers = tuple[dict[bytes, bytes], tuple[Field, ...], int]
"""Headers by name, those that were repeated, and the announced size of the body or -1."""


class MalformedRequest(ValueError):
    """A request that RFC 9113 calls malformed; its stream is reset."""


class HeaderCache:
    """The headers that requests of a connection repeat, once they are checked: clients send the
    same ones beside another path and length."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[Field, ...], _Headers] = {}

    def get(self, fields: tuple[Field, ...]) -> _Headers:
        """Raises ``MalformedRequest``."""
        found = self._known.get(fields)
        if found is None:
            found = _read_headers(fields)
            if len(self._known) >= _KNOWN_HEADERS:
                self._known.clear()
            if sum(len(value) for _, value in fields) < _KNOWN_BYTES:
                self._known[fields] = found
        return found


class RequestHead:
    """Method, target and headers of a request."""

    __slots__ = ("expected", "headers", "method", "repeated", "target")

    def __init__(self, fields: list[Field], usual: HeaderCache) -> None:
        """Raises ``MalformedRequest``."""
        pseudo: dict[bytes, bytes] = {}
        for name, value in fields:
            if name[:1] != b":":
                break
            if name in pseudo or name not in _PSEUDO:
                raise MalformedRequest("pseudo-headers")
            pseudo[name] = value
        method, scheme = pseudo.get(b":method", b""), pseudo.get(b":scheme")
        self.target = pseudo.get(b":path", b"")
        if not scheme or self.target[:1] not in (b"/", b"*"):
            raise MalformedRequest("scheme or path")
        if _METHOD.fullmatch(method) is None or _CONTROL.search(self.target) is not None:
            raise MalformedRequest("method or path")
        self.method = method.decode("ascii")
        headers, self.repeated, self.expected = usual.get(tuple(fields[len(pseudo) :]))
        self.headers = headers.copy()
        if b":authority" in pseudo:
            self.headers[b"host"] = pseudo[b":authority"]


def _read_headers(fields: tuple[Field, ...]) -> _Headers:
    headers: dict[bytes, bytes] = {}
    repeated: list[Field] = []
    for name, value in fields:
        if name not in headers:
            headers[name] = value
        elif name == b"cookie":  # a client may split what is one header
            headers[name] += b"; " + value
        else:
            repeated.append((name, value))
    if not all(map(_NAME.fullmatch, headers.keys() - _USUAL)):
        raise MalformedRequest("the name of a header")
    if not _OF_HTTP1.isdisjoint(headers) or headers.get(b"te", b"trailers") != b"trailers":
        raise MalformedRequest("a header of HTTP/1.1")
    if _CONTROL.search(b"".join([value for _, value in fields])) is not None:
        raise MalformedRequest("the value of a header")
    return headers, tuple(repeated), _announced(headers, repeated)


def _announced(headers: dict[bytes, bytes], repeated: list[Field]) -> int:
    size = headers.get(b"content-length")
    if size is None:
        return -1
    others = [value for name, value in repeated if name == b"content-length"]
    if _SIZE.fullmatch(size) is None or any(value != size for value in others):
        raise MalformedRequest("content-length")
    return int(size)


def response_block(response: Response, always: bytes, sized: bool) -> bytes:
    """The header block of a response; ``always`` are headers that are encoded already."""
    status = response.status
    parts = [_STATUS.get(status) or _field((b":status", b"%d" % status))]
    parts += map(_encoded, response.headers)
    if not response.bare:
        parts.append(always)
    parts.append(_date())
    if sized:
        parts.append(literal(b"content-length", b"%d" % response.length))
    return b"".join(parts)


def header_block(headers: Iterable[Header]) -> bytes:
    return b"".join(map(_encoded, headers))


def _encoded(header: Header) -> bytes:
    if len(header[1]) > _CACHED_BYTES:
        return literal(header[0].lower(), header[1])
    return _field(header)


@lru_cache(256)
def _field(header: Header) -> bytes:
    return literal(header[0].lower(), header[1])


class _Clock:
    """The encoded ``date``, made when its text changes."""

    text = b""
    block = b""


def _date() -> bytes:
    text = date_value()
    if text is not _Clock.text:
        _Clock.text, _Clock.block = text, literal(b"date", text)
    return _Clock.block
