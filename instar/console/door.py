"""Stands before an API and picks out what is the console's.

Imported by every server, so it knows next to nothing; the console itself is loaded, in a thread,
when the first browser asks for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from instar.access.attributes import User
from instar.server.rest.handling import Handler
from instar.server.rest.request import Request
from instar.server.rest.responses import Response

if TYPE_CHECKING:
    from instar.console.pages import Console

HEADER = b"x-instar-console"
"""Sent by the page with every request; a form or a picture of another site cannot send it."""
_HOME = "/console"


class Door:
    def __init__(self, api: Handler, load: Callable[[Handler], Console]) -> None:
        self._api = api
        self._load = load
        self._loading: asyncio.Future[Console] | None = None

    def __call__(self, request: Request, peer: User | None) -> Coroutine[Any, Any, Response]:
        path = request.path
        if path.startswith(_HOME) and path[8:9] in ("", "/"):
            return self._answered(request, peer)
        if HEADER in request.headers:
            return self._passed_on(request, peer)
        return self._api(request, peer)

    async def _answered(self, request: Request, peer: User | None) -> Response:
        console = await self._console()
        return await console.answer(request, peer)

    async def _passed_on(self, request: Request, peer: User | None) -> Response:
        console = await self._console()
        return await console.pass_on(request, peer)

    def _console(self) -> Awaitable[Console]:
        if self._loading is None:
            loop = asyncio.get_running_loop()
            self._loading = loop.run_in_executor(None, self._load, self._api)
        return asyncio.shield(self._loading)
