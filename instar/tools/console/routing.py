"""Stands before an API and picks out what is the console's.

Imported by every server, so it knows next to nothing; the console itself is loaded, in a thread,
when the first browser asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from instar.kube.access.attributes import User
from instar.server.http.handler_types import Handler
from instar.server.http.messages import Request, Response
from instar.tools.console.lazy_future import Later

if TYPE_CHECKING:
    from instar.tools.console.pages import Console

HEADER = b"x-instar-console"
"""Sent by the page with every request; a form or a picture of another site cannot send it."""
_HOME = "/console"


def is_followed_link(request: Request) -> bool:
    """Whether a browser opens the path itself, from a page of ours or because somebody typed it:
    what it reads so is shown to its user and to no script."""
    headers = request.headers
    return (
        headers.get(b"sec-fetch-mode") == b"navigate"
        and headers.get(b"sec-fetch-site") in (b"same-origin", b"none")
        and request.method in ("GET", "HEAD")
        and b"cookie" in headers
    )


class Door:
    def __init__(self, api: Handler, load: Callable[[], Console]) -> None:
        self._api = api
        self._console = Later(load)

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
