"""HTTP/1.1 heads: the path in a request line, and the status line and headers of a response.

``http1_request.py`` and ``http1.py`` call these functions; ``http2/heads.py`` shares the date.
"""

from __future__ import annotations

from collections.abc import Iterable
from email.utils import formatdate
from time import time

from instar.server.http.messages import Header, Response

_REASONS = {
    200: b"OK",
    201: b"Created",
    202: b"Accepted",
    303: b"See Other",
    304: b"Not Modified",
    308: b"Permanent Redirect",
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
_STATUS_LINES = {
    status: b"HTTP/1.1 %d %b\r\n" % (status, reason) for status, reason in _REASONS.items()
}


def head(response: Response, keep_alive: bool, framing: bytes, always: bytes = b"") -> bytes:
    """Status line and headers. ``always`` are header lines that are ready to be sent."""
    status = response.status
    return b"".join(
        (
            _STATUS_LINES.get(status) or _status_line(status),
            *[b"%b: %b\r\n" % header for header in response.headers],
            b"" if response.bare else always,
            _date(),
            framing,
            b"\r\n" if keep_alive else b"connection: close\r\n\r\n",
        )
    )


def sized_head(response: Response, keep_alive: bool, always: bytes = b"") -> bytes:
    """The head of a response of known length."""
    return head(response, keep_alive, b"content-length: %d\r\n" % response.length, always)


def header_lines(headers: Iterable[Header]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def _status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d %b\r\n" % (status, _REASONS.get(status, b""))


def target(url: bytes) -> bytes:
    """Path and query of a request target, which may be a whole URL, as for a proxy."""
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
    value = b""
    line = b""


def _date() -> bytes:
    second = int(time())
    if second != _Clock.second:
        _Clock.second = second
        _Clock.value = formatdate(second, usegmt=True).encode()
        _Clock.line = b"date: %b\r\n" % _Clock.value
    return _Clock.line


def date_value() -> bytes:
    """The value of ``Date``; the same bytes within a second."""
    _date()
    return _Clock.value
