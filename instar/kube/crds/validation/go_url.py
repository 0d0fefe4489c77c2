"""URL parser with the error messages of Go's ``net/url``, as far as webhook URLs need it.

Called by ``conversion.py``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from instar.base.field_errors import go_quote

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PORT = re.compile(r":[0-9]*", re.ASCII)
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})(.{0,2})", re.DOTALL)


class WebhookUrl(NamedTuple):
    scheme: str
    host: str
    user: str | None
    query: str
    fragment: str


def parse_url(text: str) -> WebhookUrl | str:
    """Return the parts of a URL, or Go's error text."""
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        return _parse_error_text(text, "net/url: invalid control character in URL")
    rest, _, fragment = text.partition("#")
    if rest.startswith(":"):
        return _parse_error_text(rest, "missing protocol scheme")
    match = _SCHEME.match(rest)
    scheme = match[0][:-1].lower() if match else ""
    rest = rest[match.end() :] if match else rest
    rest, _, query = rest.partition("?")
    if not rest.startswith("//"):
        if not scheme and ":" in rest.split("/", 1)[0]:
            return _parse_error_text(text, "first path segment in URL cannot contain colon")
        return WebhookUrl(scheme, "", None, query, fragment)
    authority, slash, path = rest[2:].partition("/")
    user, at, host = authority.rpartition("@")
    problem = _host_problem(host) or _escape_problem(slash + path)
    if problem:
        return _parse_error_text(text, problem)
    return WebhookUrl(scheme, host, user if at else None, query, fragment)


def _host_problem(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            return "missing ']' in host"
        port = host[end + 1 :]
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    if port and not _PORT.fullmatch(port):
        return f"invalid port {go_quote(port)} after host"
    for char in host:
        if char in ' "<>\\^`{|}':
            return f"invalid character {go_quote(char)} in host name"
    return ""


def _escape_problem(path: str) -> str:
    match = _ESCAPE.search(path)
    return f"invalid URL escape {go_quote(match[0])}" if match else ""


def _parse_error_text(text: str, problem: str) -> str:
    return f"parse {go_quote(text)}: {problem}"
