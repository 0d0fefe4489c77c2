"""HTTPS client of one webhook: trust, request headers, retries on dead connections, error texts.

Used by ``transport.py``. ``connecting.py`` and ``http1_client.py`` move the bytes.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from instar.kube.api.encoding.pem import blocks
from instar.wire.webhooks import dial_errors
from instar.wire.webhooks.connecting import Connector, PeerCertificate
from instar.wire.webhooks.dialer import Dialer, NotConnected
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.http1_client import ClientConnection, ConnectionDied
from instar.wire.webhooks.http1_response import (
    AnswerFailed,
    AnswerReader,
    CutShort,
    HttpResponse,
    ResponseTooLarge,
)
from instar.wire.webhooks.http_status import HttpReply
from instar.wire.webhooks.keepalive import KeptConnections

IDLE_SECONDS = 90.0
MOST_ROUTES = 100
_HEADERS = (
    "User-Agent: kube-apiserver-admission\r\n"
    "Accept: application/json, */*\r\n"
    "Content-Type: application/json\r\n"
    "Accept-Encoding: gzip\r\n"
)
_MANY_DIGITS = 100
"""Limit of digits in a port, because Python refuses to parse thousands."""
_AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))
"""Characters of a path that are sent unescaped."""


class ClientCertificate(NamedTuple):
    """Client certificate (PEM files) for webhooks that authenticate their caller."""

    certificate: str
    key: str


def tls_context(ca_bundle: str, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """Return a context that trusts only the bundle, or the system's CAs. Raises ``CallFailed``."""
    try:
        context = ssl.create_default_context(cadata=_certificates(ca_bundle))
    except (binascii.Error, ssl.SSLError) as error:
        raise CallFailed(
            "unable to load root certificates: unable to parse bytes as PEM block",
            advice="clientConfig.caBundle must be base64 of PEM certificates",
            misconfigured=True,
        ) from error
    # As in Go: the bundle may hold an intermediate or the server certificate itself, and only
    # subject alternative names count.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    if certificate is not None:
        try:
            context.load_cert_chain(certificate.certificate, certificate.key)
        except OSError as error:
            raise CallFailed(
                f"unable to load the client certificate: {error}",
                advice="check the certificate and key files given to the server",
            ) from error
    return context


def _certificates(ca_bundle: str) -> str | None:
    """Return the certificates of the bundle; comments and other PEM blocks are ignored, as in
    Go."""
    pem = base64.b64decode(ca_bundle)
    if not pem.strip():
        return None
    found = [pem[item.start : item.end] for item in blocks(pem) if item.type == b"CERTIFICATE"]
    if not found:
        raise binascii.Error("no certificate")
    return b"\n".join(found).decode("ascii", "replace")


class HttpsClient:
    """Keep-alive connections to one webhook. ``post`` sends once; the caller sets deadlines."""

    def __init__(
        self, tls: ssl.SSLContext, dialer: Dialer, proxy: str | None, most_bytes: int
    ) -> None:
        self._connector = Connector(dialer, tls, proxy)
        self._most_bytes = most_bytes
        self._kept = KeptConnections(IDLE_SECONDS)
        self._routes: dict[str, _Route] = {}

    @property
    def certificate(self) -> PeerCertificate | None:
        """Return the certificate that the webhook presented last."""
        return self._connector.certificate

    async def close(self) -> None:
        await self._kept.close()

    async def post(self, url: str, body: bytes) -> HttpReply:
        """Send a request, and once more if a kept-alive connection turns out to be dead."""
        route = self._routes.get(url) or self._new_route(url)
        request = b"%bContent-Length: %d\r\n\r\n%b" % (route.head, len(body), body)
        try:
            return _reply(await self._exchange(route, request))
        except (NotConnected, ConnectionDied, AnswerFailed) as error:
            raise self._failed(url, route, error) from error

    async def _exchange(self, route: _Route, request: bytes) -> HttpResponse:
        connection = self._kept.take()
        if connection is not None:
            try:
                return await self._ask(connection, request)
            except ConnectionDied as error:
                if error.begun or self._kept.closed:
                    raise
        connection = await self._connector.connect(route.host, route.port)
        self._kept.add(connection)
        return await self._ask(connection, request)

    async def _ask(self, connection: ClientConnection, request: bytes) -> HttpResponse:
        try:
            answer = await connection.send(request, AnswerReader(self._most_bytes))
        except BaseException:
            connection.abort()
            raise
        self._kept.give_back(connection)
        return answer

    def _new_route(self, url: str) -> _Route:
        if len(self._routes) >= MOST_ROUTES:
            self._routes.clear()
        route = self._routes[url] = _route(url)
        return route

    def _failed(self, url: str, route: _Route, error: Exception) -> CallFailed:
        if isinstance(error, ResponseTooLarge):
            return CallFailed(
                f"the response body is larger than {self._most_bytes} bytes",
                advice="the webhook must answer with the converted objects and nothing else",
            )
        if isinstance(error, CutShort):
            return CallFailed(
                "unexpected error when reading response body. Please retry. "
                "Original error: unexpected EOF",
                advice="the webhook's answer ended early or is not valid HTTP; see its log",
            )
        if isinstance(error, NotConnected):
            explained = error.explained
        elif isinstance(error, ConnectionDied):
            explained = dial_errors.lost_connection(route.host, error.address, error.problem)
        else:
            explained = dial_errors.malformed_answer()
        return CallFailed(
            f'Post "{url}": {explained.text}',
            advice=explained.advice,
            unreachable=isinstance(error, NotConnected),
        )


class _Route(NamedTuple):
    """A parsed URL, prepared for sending."""

    host: str
    port: int
    head: bytes
    """The request head up to the content length."""


def _route(url: str) -> _Route:
    parts = urlsplit(url)
    host, colon, port = parts.netloc.rpartition(":")
    if not colon or "]" in port:
        host, port = parts.netloc, ""
    target = quote(parts.path or "/", safe=_AS_IT_IS)
    if parts.query:
        target += f"?{quote(parts.query, safe=_AS_IT_IS)}"
    head = f"POST {target} HTTP/1.1\r\nHost: {_in_ascii(parts.netloc)}\r\n{_HEADERS}"
    number = int(port) if port.isdecimal() and len(port) < _MANY_DIGITS else -1
    return _Route(host.strip("[]"), number if port else 443, head.encode())


def _in_ascii(name: str) -> str:
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return quote(name)  # will fail as an unknown host


def _reply(answer: HttpResponse) -> HttpReply:
    status, headers, body = answer
    return HttpReply(
        status=status,
        content_type=headers.get(b"content-type", b"").decode("latin-1"),
        body=body,
        retry_after=headers.get(b"retry-after", b"").decode("latin-1"),
        location=headers.get(b"location", b"").decode("latin-1") if status < 400 else "",
    )
