"""Opens a TLS connection to a webhook, through an HTTP proxy where configured.

Used by ``https.py``. The module does TLS and ``CONNECT``; ``dialer.py`` does TCP,
``http1_client.py`` the requests.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from instar.wire.webhooks import dial_errors
from instar.wire.webhooks.dialer import Dialer, NotConnected, address_text
from instar.wire.webhooks.http1_client import ClientConnection, ConnectionDied
from instar.wire.webhooks.http1_response import AnswerFailed, AnswerReader

_DEFAULT_PORTS = {"http": 80, "https": 443}


PeerCertificate = Mapping[str, Any]
"""As the ssl module returns it: ``subject``, ``notAfter``."""


class _Proxy(NamedTuple):
    host: str
    port: int
    tls: bool
    authorization: str
    """Value of the Proxy-Authorization header, or empty."""


class Connector:
    """Connects to one server."""

    def __init__(self, dialer: Dialer, tls: ssl.SSLContext, proxy: str | None) -> None:
        self._dialer = dialer
        self._tls = tls
        self._proxy = proxy
        self.certificate: PeerCertificate | None = None
        """The certificate that the server presented last."""

    async def connect(self, host: str, port: int) -> ClientConnection:
        """Connect; the certificate must be valid for ``host``. Raises ``NotConnected``."""
        connection = await self._connected(host, port)
        if connection.transport is not None:
            self.certificate = connection.transport.get_extra_info("peercert")
        return connection

    async def _connected(self, host: str, port: int) -> ClientConnection:
        if not self._proxy:
            return await self._dial(host, port, self._tls)
        proxy = _proxy(self._proxy)
        try:
            outer = await self._dial(proxy.host, proxy.port, self._tls if proxy.tls else None)
        except NotConnected as error:
            raise NotConnected(dial_errors.through_proxy(error.explained)) from error
        try:
            await _open_tunnel(outer, address_text(host, port), proxy)
            return await self._tls_inside(outer, host)
        except BaseException:
            outer.abort()
            raise

    async def _dial(self, host: str, port: int, tls: ssl.SSLContext | None) -> ClientConnection:
        made, address = await self._dialer.dial(host, port)
        name = _server_name(host) if tls is not None else None
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: ClientConnection(address), sock=made, ssl=tls, server_hostname=name
            )
        except OSError as error:
            raise NotConnected(dial_errors.lost_connection(host, address, error)) from error
        return connection

    async def _tls_inside(self, outer: ClientConnection, host: str) -> ClientConnection:
        if outer.transport is None or outer.transport.is_closing():
            raise NotConnected(dial_errors.closed_without_answer())
        inner = ClientConnection(outer.address)
        try:
            transport = await asyncio.get_running_loop().start_tls(
                outer.transport, inner, self._tls, server_hostname=_server_name(host)
            )
        except OSError as error:
            raise NotConnected(dial_errors.lost_connection(host, outer.address, error)) from error
        if transport is None:  # it was closed when the handshake had just ended
            raise NotConnected(dial_errors.closed_without_answer())
        inner.connection_made(transport)
        return inner


async def _open_tunnel(connection: ClientConnection, target: str, proxy: _Proxy) -> None:
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    request = "\r\n".join([*lines, "", ""]).encode()
    reader = _TunnelReader()
    try:
        answer = await connection.send(request, reader)
    except ConnectionDied as error:
        problem = dial_errors.lost_connection(proxy.host, connection.address, error.problem)
        raise NotConnected(problem) from error
    except AnswerFailed as error:
        raise NotConnected(dial_errors.malformed_answer()) from error
    if answer.status != 200:
        refused = connection.address, target, answer.status, reader.reason
        raise NotConnected(dial_errors.refused_by_proxy(*refused))


class _TunnelReader(AnswerReader):
    """Reads the head of the proxy's answer; the bytes after it belong to the tunnel."""

    def __init__(self) -> None:
        self.reason = ""
        super().__init__(0)

    def on_status(self, reason: bytes) -> None:
        self.reason += reason.decode("latin-1")

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.complete = self.head_is_read

    def on_body(self, data: bytes) -> None:
        """Ignore the body of an error answer."""

    def on_message_complete(self) -> None:
        if not self.complete:
            self.reason = ""


def _proxy(text: str) -> _Proxy:
    """Parse a proxy URL; without a scheme it is plain HTTP, as in Go."""
    url = urlsplit(text if "://" in text else f"http://{text}")
    port = _DEFAULT_PORTS.get(url.scheme)
    host = url.hostname
    try:
        port = port and (url.port or port)
    except ValueError:
        port = None
    if not host or not port:
        raise NotConnected(
            dial_errors.through_proxy(dial_errors.no_such_proxy(url.scheme, url.netloc))
        )
    authorization = ""
    if url.username is not None:
        user = f"{unquote(url.username)}:{unquote(url.password or '')}"
        authorization = f"Basic {base64.b64encode(user.encode()).decode()}"
    return _Proxy(host, port, url.scheme == "https", authorization)


def _server_name(host: str) -> str:
    return host.rstrip(".")
