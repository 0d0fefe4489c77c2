"""Connections to kubelets: passes a request on and streams the response, or becomes a tunnel.

``rest/pods/pod_verbs.py`` and ``rest/proxies.py`` call it for pods on Nodes that name a kubelet. A
connection is used once. ``rest/pods/kubelet_requests.py`` says which address and URL.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from instar.base import errors
from instar.server.aggregation.backend_connection import (
    BackendConnection,
    BackendFailed,
    ResponseHead,
    open_connection,
)
from instar.server.aggregation.proxied_feed import ProxiedFeed, exchange_streamed
from instar.server.aggregation.proxy import framing_of
from instar.server.aggregation.request_head import kubelet_head, response_headers
from instar.server.http.messages import Request, Response
from instar.wire.webhooks.dialer import Dialer, address_text
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.https import ClientCertificate, tls_context
from instar.wire.webhooks.resolver import HostPort, ServiceResolver

_SWITCHING_PROTOCOLS = 101


class Kubelets:
    """Sends requests to kubelets with the server's client certificate."""

    def __init__(
        self,
        address_types: Sequence[str],
        certificate: ClientCertificate | None,
        authority: Path | None,
    ) -> None:
        """``authority``: CA of the kubelets' certificates. As upstream, they are not verified
        without one: kubelets sign their own."""
        self.address_types = address_types
        self._certificate, self._authority = certificate, authority
        self._dialer = Dialer(None, ServiceResolver())

    async def pass_on(self, request: Request, host: str, port: int, uri: str) -> Response:
        framing = framing_of(request)
        head = kubelet_head(request, uri, address_text(host, port), framing)
        request.patience = 0.0
        try:
            connection = await open_connection(
                self._dialer, HostPort(host, port), host, lambda: self._tls
            )
            answer = await exchange_streamed(connection, request, head, chunked=framing.chunked)
        except BackendFailed as error:
            raise errors.Internal(f"error dialing backend: {error}") from error
        except CallFailed as error:
            raise errors.Internal(f"error dialing backend: {error.text}") from error
        return _response(request, connection, answer)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Raises ``CallFailed``."""
        context = tls_context("", self._certificate)
        if self._authority is None:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        else:
            context.load_verify_locations(cafile=str(self._authority))
        context.set_alpn_protocols(["http/1.1"])
        return context


def _response(request: Request, connection: BackendConnection, answer: ResponseHead) -> Response:
    headers = response_headers(answer.headers)
    switched = answer.status == _SWITCHING_PROTOCOLS
    if switched:
        headers += [(b"connection", b"Upgrade"), (b"upgrade", answer.first(b"upgrade"))]
    names = {name for name, _ in headers}
    feed = ProxiedFeed(
        connection,
        request.incoming,
        seconds=0.0,
        give_back=connection.abort,
        closed=lambda: None,
    )
    sized = answer.bodiless or switched or b"content-length" in names
    return Response(answer.status, (), headers, stream=feed, bare=True, raw=sized)
