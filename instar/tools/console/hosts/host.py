"""What the console needs to know of the place it runs in."""

from __future__ import annotations

from typing import Any, Protocol

from instar.base.json_values import Object
from instar.kube.access.attributes import User
from instar.server.http.messages import Request, Response
from instar.tools.console.authentication import Visitor
from instar.tools.console.sessions import Session
from instar.wire.client.client import Client


class Host(Protocol):
    mode: str
    """``serve`` or ``cluster``."""

    def client(self, visitor: Visitor, request: Request) -> Client:
        """Asks the cluster with the rights of the visitor."""
        ...

    async def stranger(self, request: Request, peer: User | None) -> Response:
        """The answer to a browser that shows no session; raises ``NotSignedIn`` where there is
        none."""
        ...

    async def pass_on(self, visitor: Visitor, request: Request) -> Response:
        """The cluster's own answer to a request for its API."""
        ...

    def sign_in(self, shown: Object, now: float) -> Session:
        """Raises ``BadRequest`` or ``NotSignedIn``. What is shown may still be refused by the
        cluster."""
        ...

    def login(self) -> dict[str, Any]:
        """By what one can sign in here."""
        ...

    def server(self, request: Request) -> dict[str, Any]:
        """Where the cluster is."""
        ...
