"""Console host of ``instar console``: requests go to any cluster with a kubeconfig's credentials.

Created by ``tools/console/listening.py``, for the one browser that opened the printed link.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from typing import Any

from instar.base.errors import BadRequest, ServiceUnavailable
from instar.base.json_values import Object
from instar.kube.access.attributes import User
from instar.server.http.messages import Header, Request, Response
from instar.tools.console.authentication import NotSignedIn, Visitor
from instar.tools.console.hosts.proxy_stream import ProxiedStream
from instar.tools.console.sessions import LONGEST_SECONDS, Session
from instar.wire.client.client import Client
from instar.wire.client.http import Http
from instar.wire.client.transport import ConnectionLost

_FORWARDED_HEADERS = (b"accept", b"content-type", b"if-none-match", b"if-modified-since")
"""Request headers forwarded to the cluster."""
_OURS = frozenset(
    (
        *("connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding"),
        *("set-cookie", "strict-transport-security", "date", "server"),
        *("proxy-authenticate", "trailer", "upgrade", "www-authenticate"),
    )
)
"""Hop-by-hop response headers, which are not forwarded."""


class SignInLinks:
    """Secrets of sign-in links: each is valid once and then replaced."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """``show`` is called with each secret, to print it on the terminal."""
        self._show = show
        self._secret = ""

    def renew(self) -> None:
        self._secret = secrets.token_urlsafe(32)
        self._show(self._secret)

    def use(self, shown: str) -> bool:
        good = hmac.compare_digest(shown.encode(), self._secret.encode())
        if good:
            self.renew()
        return good


class KubeconfigHost:
    """The console of ``instar console``: calls a cluster with a kubeconfig."""

    mode = "cluster"

    def __init__(self, client: Client, links: SignInLinks, context: str | None) -> None:
        self._client = client
        self._links = links
        self._context = context

    def client(self, visitor: Visitor, request: Request) -> Client:
        _check(visitor)
        return self._client

    async def without_session(self, request: Request, peer: User | None) -> Response:
        raise NotSignedIn("NotSignedIn")

    async def pass_on(self, visitor: Visitor, request: Request) -> Response:
        _check(visitor)
        if request.uri[:1] != b"/":
            # a path like ``.elsewhere`` would change the host
            raise BadRequest("only paths of the cluster's API are passed on")
        http, access = await self._client.connected(), self._client.access
        assert isinstance(http, Http), "a client of a kubeconfig has connections of its own"
        headers = [
            (name.decode(), request.header(name))
            for name in _FORWARDED_HEADERS
            if name in request.headers
        ]
        request.patience = 0.0  # no timeout: the cluster or the browser decides
        try:
            opened = await http.open(
                request.method,
                access.server + request.uri.decode("latin-1"),
                headers=[*headers, *access.headers()],
                body=request.content() or None,
                server_name=access.server_name,
            )
        except ConnectionLost as error:
            raise ServiceUnavailable(f"{request.method} {request.path}: {error}") from None
        return Response(
            opened.status, (), _forwarded_headers(opened.headers.items()), ProxiedStream(opened)
        )

    def sign_in(self, shown: Object, now: float) -> Session:
        link = shown.get("link")
        if not isinstance(link, str):
            raise BadRequest("open the link that instar console printed")
        if not self._links.use(link):
            raise NotSignedIn("CredentialRefused")
        return Session("kubeconfig", "", now + LONGEST_SECONDS)

    def login(self) -> dict[str, Any]:
        return {"token": False, "certificate": False, "oidc": None, "link": True}

    def server(self, request: Request) -> dict[str, Any]:
        return {
            "url": self._client.access.server,
            "context": self._context or self._client.access.context or None,
        }


def _check(visitor: Visitor) -> None:
    """Reject an Authorization header: only a browser with the link may use the kubeconfig."""
    if visitor.how != "kubeconfig":
        raise NotSignedIn("NotSignedIn")


def _forwarded_headers(headers: Any) -> list[Header]:
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in headers
        if name.lower() not in _OURS
    ]
