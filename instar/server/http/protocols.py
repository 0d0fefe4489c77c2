"""Chooses the protocol of a new connection: HTTP/2 where the TLS handshake agreed on it.

``lifecycle/lifetime.py`` makes ``Connections`` for the API, ``tools/console`` for the console. A
port without TLS serves HTTP/1.1 only.
"""

from __future__ import annotations

import asyncio

from instar.server.http.http1 import Http1Connection
from instar.server.http.http2.connection import ServerHttp2Connection
from instar.server.http.request_service import RequestService


class Connections(RequestService):
    """Makes a connection for each client; all of them share the handler and the limits."""

    def __call__(self, negotiated: str | None = None) -> asyncio.Protocol:
        """``negotiated`` is the protocol of the TLS handshake, None without one."""
        if negotiated == "h2":
            return ServerHttp2Connection(self)
        return Http1Connection(self)
