"""Puts a console together: for ``instar serve``, and for ``instar console``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from instar.console.door import Door
from instar.server.rest.handling import Handler, Secret

if TYPE_CHECKING:
    from instar.console.api import Api
    from instar.console.pages import Console


def before(api: Handler, secret: Secret) -> Handler:
    """The console of a server: nothing of it is loaded until somebody asks for it."""
    return Door(api, lambda: _within(api, secret))


def _within(api: Handler, secret: Secret) -> Console:
    # Only here: few servers are looked at with a browser, and all want to start soon.
    from instar.console.assets import Assets
    from instar.console.hosts.within import Within
    from instar.console.pages import Console
    from instar.console.sessions import Sealer, Sessions
    from instar.console.visitors import Visitors

    sessions = Sessions(Sealer(secret()))
    visitors = Visitors(sessions, time.time, scheme="https", cookie="__Host-instar-console")
    return Console(Within(api), visitors, Assets(), _api, time.time)


def _api() -> Api:
    # Only here: half of the tools, which the first page does not wait for.
    from instar.console.api import Api

    return Api()
