"""Interface between the console and its host: a server, or a standalone process.

Implemented by ``embedded.py`` and ``kubeconfig.py``, called by ``tools/console/pages.py``.
"""

from __future__ import annotations

from typing import Any, Protocol

from instar.base.json_values import Object
from instar.kube.access.attributes import User
from instar.server.http.messages import Request, Response
from instar.tools.console.authentication import Visitor
from instar.tools.console.sessions import Session
from instar.wire.client.client import Client


class Host(Protocol):
    """Access to the cluster that the console shows."""

    mode: str
    """``serve`` or ``cluster``."""

    def client(self, visitor: Visitor, request: Request) -> Client:
        """Return a client with the visitor's rights."""
        ...

    async def without_session(self, request: Request, peer: User | None) -> Response:
        """Respond to a browser without a session. Raises ``NotSignedIn`` if sign-in is required."""
        ...

    async def pass_on(self, visitor: Visitor, request: Request) -> Response:
        """Forward a request to the cluster's API."""
        ...

    def sign_in(self, shown: Object, now: float) -> Session:
        """Create a session from the sign-in form. Raises ``BadRequest`` or ``NotSignedIn``; the
        cluster may still reject the credentials.
        """
        ...

    def login(self) -> dict[str, Any]:
        """Return the available ways to sign in."""
        ...

    def server(self, request: Request) -> dict[str, Any]:
        """Return the cluster's address and name."""
        ...
