"""Puts the web console (the browser UI under ``/console``) in front of a server's API handler.

``instar serve`` calls it. The console's modules are imported when a browser first requests a page
of the console.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from instar.server.http.handler_types import Front, Handler, Secret
from instar.tools.console.routing import ConsoleRouter
from instar.tools.console.settings import OidcSettings

if TYPE_CHECKING:
    from instar.tools.console.api import Api
    from instar.tools.console.oidc import OidcSignIn
    from instar.tools.console.pages import Console


def console_front(oidc: OidcSettings | None = None, *, read_only: bool = False) -> Front:
    """Return the wrapper of a server's handler; the console is loaded on its first request."""

    def stand(api: Handler, secret: Secret) -> Handler:
        return ConsoleRouter(api, lambda: _embedded_console(api, secret, oidc, read_only))

    return stand


def _embedded_console(
    api: Handler, secret: Secret, oidc: OidcSettings | None, read_only: bool
) -> Console:
    # Imported here: few servers are opened in a browser, and all should start fast.
    from instar.tools.console.assets import Assets
    from instar.tools.console.authentication import Visitors
    from instar.tools.console.hosts.embedded import EmbeddedHost
    from instar.tools.console.pages import Console
    from instar.tools.console.sessions import Sealer, Sessions

    sessions = Sessions(Sealer(secret()))
    visitors = Visitors(sessions, time.time, scheme="https", cookie="__Host-instar-console")
    signing_in = None if oidc is None else _oidc(oidc, secret)
    offered = None if signing_in is None else signing_in.offer()
    host = EmbeddedHost(api, offered, read_only=read_only)
    return Console(host, visitors, Assets(), _api, time.time, signing_in)


def _oidc(settings: OidcSettings, secret: Secret) -> OidcSignIn:
    # Imported here, because most servers have no issuer.
    from instar.tools.console.oidc import PURPOSE, OidcSignIn
    from instar.tools.console.sessions import Sealer

    return OidcSignIn(settings, Sealer(secret(), PURPOSE), time.time)


def _api() -> Api:
    # Imported here: it loads half of the tools, which the first page does not need.
    from instar.tools.console.api import Api

    return Api()
