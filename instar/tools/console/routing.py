"""Wraps the API handler and routes console requests to the web console.

Created by ``setup.py`` and ``listening.py``. Every server imports this module, so it is small; the
rest of the console is imported in a thread on its first request.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from instar.kube.access.attributes import User
from instar.server.http.handler_types import Handler
from instar.server.http.messages import Request, Response
from instar.tools.console.lazy_future import LazyFuture

if TYPE_CHECKING:
    from instar.tools.console.pages import Console

HEADER = b"x-instar-console"
"""Sent by the page with every request; a form or an image of another site cannot send it."""
_HOME = "/console"


def is_followed_link(request: Request) -> bool:
    """Return whether the browser navigates to the path itself (a link or a typed address). The
    answer is then shown to the user and not readable by scripts."""
    headers = request.headers
    return (
        headers.get(b"sec-fetch-mode") == b"navigate"
        and headers.get(b"sec-fetch-site") in (b"same-origin", b"none")
        and request.method in ("GET", "HEAD")
        and b"cookie" in headers
    )


class ConsoleRouter:
    """Passes requests below ``/console`` to the console, and all others to the API."""

    def __init__(self, api: Handler, load: Callable[[], Console]) -> None:
        self._api = api
        self._console = LazyFuture(load)

    def __call__(self, request: Request, peer: User | None) -> Coroutine[Any, Any, Response]:
        path = request.path
        if path.startswith(_HOME) and path[8:9] in ("", "/"):
            return self._answered(request, peer)
        if HEADER in request.headers or is_followed_link(request):
            return self._passed_on(request, peer)
        return self._api(request, peer)

    async def _answered(self, request: Request, peer: User | None) -> Response:
        console = await self._console()
        return await console.answer(request, peer)

    async def _passed_on(self, request: Request, peer: User | None) -> Response:
        console = await self._console()
        return await console.pass_on(request, peer)
