"""Authenticator of requests by front proxy, client certificate, bearer token, or as anonymous.

``server/app.py`` calls it for each request. Tokens are checked in ``identity``; permissions are
decided by ``kube/access``.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from instar.base import errors
from instar.base.fast_dataclass import dataclass
from instar.base.text_files import read_text
from instar.kube.access.attributes import ANONYMOUS, AUTHENTICATED, User
from instar.server.access.front_proxy import FrontProxy, Proxy, UnacceptedCertificate
from instar.server.access.websocket_tokens import websocket_token
from instar.server.http.messages import Request
from instar.server.identity.tokens import TokenNotes, TokenRejected, Tokens

log = logging.getLogger("instar.access")
_EXTRA_SPACE = (
    "the provided Authorization header contains extra space before the bearer token, and is ignored"
)


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Whether requests without credentials are ``system:anonymous``."""

    allowed: bool = False
    paths: frozenset[str] | None = None
    """Only for these paths; None: for all."""

    def user_of(self, request: Request) -> User | None:
        there = self.paths is None or request.path in self.paths
        return ANONYMOUS if self.allowed and there else None


class Authenticator:
    """Finds the user of a request."""

    def __init__(
        self,
        tokens: Tokens,
        static: Mapping[str, User],
        *,
        anonymous: Anonymous,
        front_proxy: FrontProxy | None = None,
    ) -> None:
        self.tokens = tokens
        self._by_header = {f"Bearer {token}".encode(): user for token, user in static.items()}
        """Looked up by a hash with a secret seed and then compared as a whole, so timing reveals
        no byte of a token."""
        self.anonymous = anonymous
        self.front_proxy = front_proxy
        """Replaced when the home announces other header names."""

    def recognise(self, request: Request, peer: User | None) -> User | None:
        """Return the user if nothing has to be awaited; None means: call ``identify``."""
        if peer is not None:
            return None
        header = request.headers.get(b"authorization")
        if header is None:
            if b"sec-websocket-protocol" in request.headers:
                return None
            return self.anonymous.user_of(request)
        user = self._by_header.get(header)
        if user is not None:
            return user
        token = bearer_token(request)
        return self.tokens.known(token) if token else None

    async def identify(self, request: Request, peer: User | None) -> User:
        """Return the user of the request. Raises ``Unauthorized``, also for a client certificate
        that names no user: only a request without credentials is anonymous."""
        certified = isinstance(peer, Proxy | UnacceptedCertificate)
        if isinstance(peer, Proxy):
            told = None if self.front_proxy is None else self.front_proxy.user_of(request)
            if told is not None:
                return told
            peer = peer.itself
        if peer is not None and not isinstance(peer, UnacceptedCertificate):
            return peer
        token = bearer_token(request) or websocket_token(request)
        if token:
            try:
                static = self._by_header.get(f"Bearer {token}".encode())
                known = static or self.tokens.known(token)
                return known or await self._user_of(request, token)
            except TokenRejected as refused:
                _add_notes(request, refused.notes)
                request.refused_because = str(refused)
                log.info("%s %s: a token was refused: %s", request.method, request.path, refused)
                raise errors.Unauthorized from refused
        if certified:
            raise errors.Unauthorized
        if request.headers.get(b"authorization", b"")[:8].lower() == b"bearer  ":
            request.warn(_EXTRA_SPACE)
        anonymous = self.anonymous.user_of(request)
        if anonymous is None:
            raise errors.Unauthorized
        return anonymous

    async def _user_of(self, request: Request, token: str) -> User:
        found = await self.tokens.identify(token)
        _add_notes(request, found.notes)
        return found.user


def _add_notes(request: Request, notes: TokenNotes) -> None:
    for text in notes.warnings:
        request.warn(text)
    for key, value in notes.annotations:
        request.annotate(key, value)


def bearer_token(request: Request) -> str:
    """Return the bearer token; empty without one and for other schemes."""
    header = request.headers.get(b"authorization")
    if header is None:
        return ""
    scheme, *rest = header.decode("latin-1").split(" ", 2)
    return rest[0] if scheme.lower() == "bearer" and rest else ""


def read_token_file(path: Path) -> dict[str, User]:
    """Read CSV ``token,user,uid[,"group1,group2"]``. Raises ``ValueError`` with the line number."""
    tokens: dict[str, User] = {}
    lines = StringIO(read_text(path), newline="")
    for number, row in enumerate(csv.reader(lines), start=1):
        if not row:
            continue
        if len(row) < 3 or not row[0] or not row[1]:
            raise ValueError(f'{path}:{number}: expected token,user,uid[,"group1,group2"]')
        groups = tuple(part.strip() for part in row[3].split(",")) if len(row) > 3 else ()
        named = tuple(group for group in groups if group)
        tokens[row[0]] = User(row[1], (*named, AUTHENTICATED), row[2])
    return tokens
