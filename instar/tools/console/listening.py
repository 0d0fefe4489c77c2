"""Standalone console of ``instar console``: listens on loopback for one browser and one cluster.

Called by ``cli/commands/console.py``; composes the same parts as ``setup.py`` does for a server.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable

from instar.base.errors import ApiError
from instar.kube.access.attributes import User
from instar.server.http.handler_types import Handler
from instar.server.http.messages import Request, Response
from instar.server.http.protocols import Connections
from instar.server.rest.error_responses import problem
from instar.tools.console.api import Api
from instar.tools.console.assets import Assets
from instar.tools.console.authentication import NotSignedIn, Visitors
from instar.tools.console.hosts.kubeconfig import KubeconfigHost, SignInLinks
from instar.tools.console.local_migrations import LocalMigrations
from instar.tools.console.origin_checks import check_host
from instar.tools.console.pages import Console
from instar.tools.console.routing import ConsoleRouter
from instar.tools.console.security_headers import add_security_headers, redirect
from instar.tools.console.sessions import Sealer, Sessions
from instar.wire.client.client import Client
from instar.wire.conversion.factory import ConversionServices

_GRACE_SECONDS = 1.0


@contextlib.asynccontextmanager
async def serving(
    client: Client, host: str, port: int, show: Callable[[str], None], context: str | None = None
) -> AsyncIterator[str]:
    """Serve within ``async with``; ``show`` is called with each sign-in URL. Raises ``OSError`` if
    the address cannot be bound."""
    services, local = ConversionServices(memo=None), LocalMigrations(client)
    answering = _LateHandler()
    connections = Connections(answering)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(connections, host, port)
    port = listening.sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    links = SignInLinks(lambda secret: show(f"http://{shown}:{port}/console/#link={secret}"))
    # Cookies are shared between ports, so each console has its own cookie name.
    visitors = Visitors(
        Sessions(Sealer(os.urandom(32))), time.time, scheme="http", cookie=f"instar-console-{port}"
    )
    console = Console(
        KubeconfigHost(client, links, context),
        visitors,
        Assets(),
        lambda: Api(services, local),
        time.time,
    )
    names = {"localhost", "127.0.0.1", "[::1]", shown}
    allowed = frozenset(f"{name}:{port}" for name in names)
    answering.handler = local_hosts_only(
        ConsoleRouter(_refuse_without_session, lambda: console), allowed
    )
    links.renew()
    try:
        yield f"http://{shown}:{port}"
    finally:
        listening.close()
        await connections.close(_GRACE_SECONDS)
        await local.close()
        await services.close()


class _LateHandler:
    """Handler that is set after the port is known."""

    handler: Handler

    async def __call__(self, request: Request, peer: User | None) -> Response:
        return await self.handler(request, peer)


def local_hosts_only(door: Handler, allowed: frozenset[str]) -> Handler:
    """Reject requests with another Host than a name of this machine (DNS rebinding)."""

    async def handle(request: Request, peer: User | None) -> Response:
        await asyncio.sleep(0)  # connections of a client need a task, see ``base/eager_tasks.py``
        try:
            check_host(request, allowed)
        except ApiError as error:
            return add_security_headers(problem(error, request))
        if request.path == "/":
            return add_security_headers(redirect(308, "/console/"))
        return await door(request, peer)

    return handle


async def _refuse_without_session(request: Request, peer: User | None) -> Response:
    """Wrap the handler to reject API requests that are not from the console's page."""
    return add_security_headers(problem(NotSignedIn("NotSignedIn"), request))
