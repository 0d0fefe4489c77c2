"""Console host inside ``instar serve``: API requests are function calls in the server's process,
with the visitor's credentials.

Created by ``tools/console/setup.py``; implements ``host.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from instar.base.errors import BadRequest
from instar.base.json_values import Object
from instar.kube.access.attributes import User
from instar.kube.api.user_agents import CONSOLE
from instar.server.http.handler_types import Handler
from instar.server.http.messages import Request, Response
from instar.tools.console.authentication import NotSignedIn, Visitor
from instar.tools.console.sessions import Session, session_of
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import Access
from instar.wire.client.transport import ClientReply, ConnectionLost

_LONGEST_TOKEN = 16 << 10


class AppSender:
    """``Sender`` that passes a client's requests to the API handler of this process."""

    def __init__(self, api: Handler, visitor: Visitor, remote: str) -> None:
        self._api = api
        self._visitor = visitor
        self._remote = remote

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]],
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        server_name: str | None = None,
    ) -> ClientReply:
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        sent = {name.lower().encode(): value.encode() for name, value in pairs}
        if self._visitor.authorization is not None:
            sent[b"authorization"] = self._visitor.authorization
        request = Request(
            method,
            urlsplit(url).path,
            {name: [value] for name, value in (query or {}).items()},
            sent,
            body or b"",
            remote=self._remote,
        )
        await asyncio.sleep(0)  # most answers need no waiting, so let others run
        response = await self._api(request, self._visitor.peer)
        if response.stream is not None:
            response.stream.close()
            raise ConnectionLost("an answer without an end was asked for")
        return ClientReply(response.status, _readable(response), b"".join(response.chunks))

    async def close(self) -> None:
        """Nothing to close."""


def _readable(response: Response) -> dict[str, str]:
    return {name.decode().title(): value.decode("latin-1") for name, value in response.headers}


class EmbeddedHost:
    """The console inside ``instar serve``: calls the server in the same process."""

    mode = "serve"

    def __init__(
        self, api: Handler, oidc: Mapping[str, Any] | None = None, *, read_only: bool = False
    ) -> None:
        """``oidc`` is the sign-in at an OIDC issuer, if one is configured. ``read_only``: the
        server refuses every write, and the pages say so."""
        self._api = api
        self._oidc = oidc
        self._read_only = read_only

    def client(self, visitor: Visitor, request: Request) -> Client:
        sender = AppSender(self._api, visitor, request.remote)
        return Client(Access(server=_origin(request)), user_agent=CONSOLE, sender=sender)

    async def without_session(self, request: Request, peer: User | None) -> Response:
        return await self._api(request, peer)

    async def pass_on(self, visitor: Visitor, request: Request) -> Response:
        if visitor.authorization is not None:
            request.headers[b"authorization"] = visitor.authorization
        own = request.header(b"user-agent")
        request.headers[b"user-agent"] = f"{CONSOLE}/{own}".encode()
        return await self._api(request, visitor.peer)

    def sign_in(self, shown: Object, now: float) -> Session:
        token = shown.get("token")
        if not isinstance(token, str) or not token.strip():
            raise BadRequest('to sign in, send {"token": "…"}')
        token = token.strip()
        if len(token) > _LONGEST_TOKEN or not token.isascii() or not token.isprintable():
            raise NotSignedIn("CredentialRefused")
        return session_of("token", token, now)

    def login(self) -> dict[str, Any]:
        return {"token": True, "certificate": True, "oidc": self._oidc, "link": False}

    def server(self, request: Request) -> dict[str, Any]:
        return {"url": _origin(request), "context": None, "readOnly": self._read_only}


def _origin(request: Request) -> str:
    return f"https://{request.header(b'host')}"
