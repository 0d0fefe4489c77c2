"""Heads of proxied messages: the request as a backend gets it, the response as a client gets it.

``proxy.py`` and ``backends.py`` call it. Credentials and identity headers of the client are taken
out, the user that this server has authenticated is put in. Pure functions on bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from instar.kube.access.attributes import User
from instar.server.aggregation.go_http import encode_query, escape_header_key, is_header_value
from instar.server.http.messages import Header, Request

USER, UID, GROUP, EXTRA = "X-Remote-User", "X-Remote-Uid", "X-Remote-Group", "X-Remote-Extra-"
"""The headers in which a front proxy names the user, as kube-apiserver sends them."""
_CONNECTION = (
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
)
"""Headers about one connection, which a proxy does not pass on."""
_OWN = (
    b"host",
    b"authorization",
    b"expect",
    b"content-length",
    b"x-remote-user",
    b"x-remote-uid",
    b"x-remote-group",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-forwarded-uri",
    b"audit-id",
)
"""Request headers that this server makes itself or keeps to itself."""
_OWN_PREFIXES = (b"x-remote-extra-", b"impersonate-")
_ANSWERED_HERE = (
    b"audit-id",
    b"date",
    b"x-kubernetes-pf-flowschema-uid",
    b"x-kubernetes-pf-prioritylevel-uid",
    b"access-control-allow-credentials",
    b"access-control-allow-headers",
    b"access-control-allow-methods",
    b"access-control-allow-origin",
)
"""Response headers of a backend that this server sends itself, or that kube-apiserver drops."""


class InvalidHeader(Exception):
    """A value cannot be sent as a header; the text is Go's."""


class Framing(NamedTuple):
    """How the body of a proxied request is sent."""

    length: int = -1
    """Bytes of the body; -1: not known."""
    chunked: bool = False
    upgrade: bytes = b""
    """The protocol that the client wants to change to; empty: none."""


def identity_headers(user: User) -> Iterator[tuple[str, bytes]]:
    """The headers that name a user to a backend. Raises ``InvalidHeader``."""
    yield USER, _value(USER, user.name)
    if user.uid:
        yield UID, _value(UID, user.uid)
    for group in user.groups:
        yield GROUP, _value(GROUP, group)
    for key, values in user.extra.items():
        name = EXTRA + escape_header_key(key)
        for value in values:
            yield name, _value(name, value)


def _value(name: str, text: str) -> bytes:
    value = text.encode("utf-8", "surrogateescape")
    if not is_header_value(value):
        raise InvalidHeader(f'net/http: invalid header field value for "{name}"')
    return value


def proxied_head(request: Request, user: User, host: str, audit_id: str, framing: Framing) -> bytes:
    """The head of a request for the backend at ``host``. Raises ``InvalidHeader``."""
    path, _, query = request.uri.partition(b"?")
    encoded = encode_query(query)
    target = path + (f"?{encoded}".encode() if encoded else b"")
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), target), b"Host: " + host.encode()]
    lines += [b"%b: %b" % header for header in _passed_on(request)]
    lines += [b"%b: %b" % (name.encode(), value) for name, value in identity_headers(user)]
    came_by = [*request.all_of(b"x-forwarded-for"), *filter(None, (request.remote,))]
    lines.append(b"X-Forwarded-For: " + ", ".join(came_by).encode())
    if not framing.upgrade:
        lines += [
            b"X-Forwarded-Host: " + host.encode(),
            b"X-Forwarded-Proto: https",
            b"X-Forwarded-Uri: " + path,
        ]
    lines.append(b"Audit-Id: " + audit_id.encode("latin-1"))
    lines += _framing_lines(framing)
    return b"\r\n".join([*lines, b"", b""])


def kubelet_head(request: Request, uri: str, host: str, framing: Framing) -> bytes:
    """The head of a request for a kubelet: without the client's identity, as the kubelet knows this
    server by its certificate."""
    line = f"{request.method} {uri} HTTP/1.1".encode("latin-1")
    lines = [line, b"Host: " + host.encode()]
    lines += [b"%b: %b" % header for header in _passed_on(request)]
    return b"\r\n".join([*lines, *_framing_lines(framing), b"", b""])


def _framing_lines(framing: Framing) -> list[bytes]:
    if framing.upgrade:
        return [b"Connection: Upgrade", b"Upgrade: " + framing.upgrade]
    if framing.chunked:
        return [b"Transfer-Encoding: chunked"]
    return [b"Content-Length: %d" % framing.length] if framing.length >= 0 else []


def _passed_on(request: Request) -> Iterator[Header]:
    named = _named_in_connection(request.headers.get(b"connection", b""))
    for name, value in (*request.headers.items(), *request.repeated):
        if name in _CONNECTION or name in _OWN or name in named:
            continue
        if not name.startswith(_OWN_PREFIXES):
            yield name, value


def _named_in_connection(value: bytes) -> frozenset[bytes]:
    return frozenset(part.strip().lower() for part in value.split(b",") if part.strip())


def request_head(
    path: str, host: str, user: User, headers: Mapping[str, str] | None = None
) -> bytes:
    """The head of a GET that this server sends for itself."""
    lines = [f"GET {path} HTTP/1.1".encode(), f"Host: {host}".encode()]
    lines.append(b"User-Agent: Go-http-client/1.1")
    lines += [f"{name}: {value}".encode() for name, value in (headers or {}).items()]
    lines += [b"%b: %b" % (name.encode(), value) for name, value in identity_headers(user)]
    return b"\r\n".join([*lines, b"", b""])


def response_headers(headers: Iterable[Header]) -> list[Header]:
    """The headers of a backend's response that its client gets."""
    found = [(name.lower(), value) for name, value in headers]
    named = _named_in_connection(b",".join(value for name, value in found if name == b"connection"))
    return [
        (name, value)
        for name, value in found
        if name not in _CONNECTION and name not in _ANSWERED_HERE and name not in named
    ]
