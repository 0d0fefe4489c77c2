"""The heads of HTTP/1.1: what a request's target names, and how an answer begins."""

from __future__ import annotations

from email.utils import formatdate
from time import time

from instar.server.responses import Response

_REASONS = {
    200: b"OK",
    201: b"Created",
    202: b"Accepted",
    304: b"Not Modified",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    406: b"Not Acceptable",
    409: b"Conflict",
    410: b"Gone",
    413: b"Request Entity Too Large",
    415: b"Unsupported Media Type",
    422: b"Unprocessable Entity",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
}


def head(response: Response, keep_alive: bool, framing: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d %b\r\n" % (response.status, _REASONS.get(response.status, b""))]
    lines += [b"%b: %b\r\n" % header for header in response.headers]
    lines.append(_date())
    lines.append(framing)
    lines.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
    return b"".join(lines)


def target(url: bytes) -> bytes:
    """Path and query. A client may name the whole address, as it must to a proxy."""
    if url[:1] == b"/":
        return url
    scheme, found, rest = url.partition(b"://")
    if not found or scheme.lower() not in (b"http", b"https"):
        return url
    authority, slash, path = rest.partition(b"/")
    if b"?" in authority:
        return b"/?" + rest.partition(b"?")[2]
    return slash + path if slash else b"/"


class _Clock:
    """The ``Date`` line, made once a second."""

    second = 0
    line = b""


def _date() -> bytes:
    second = int(time())
    if second != _Clock.second:
        _Clock.second = second
        _Clock.line = f"date: {formatdate(second, usegmt=True)}\r\n".encode()
    return _Clock.line
