"""List stream: encodes a list part by part while the client reads it.

``verbs.py`` uses it where objects must be converted or read from disk first. A failure after the
first bytes aborts the connection, so that the client sees that the list is incomplete.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

from instar.base import limits
from instar.base.errors import ApiError
from instar.server.http.messages import JSON_TYPE, Outlet, Response
from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.stored.views import Views
from instar.server.registry.verbs.read import Listing, Parts
from instar.server.rest.responses import list_closing

log = logging.getLogger(__name__)
_PIECE_BYTES = 96 << 10


def streamed_list(listing: Listing, more: Parts, version: VersionServing) -> Response:
    """A response of unknown length."""
    closing = list_closing(listing, version)
    feed = ListFeed(version.list_opening, listing.views, more, closing)
    return Response(200, (), [JSON_TYPE], stream=feed)


class ListFeed:
    """Sends a list part by part, in a task of its own."""

    def __init__(self, opening: bytes, first: Views, more: Parts, closing: bytes) -> None:
        self._opening, self._first, self._more, self._closing = opening, first, more, closing
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def open(self, outlet: Outlet) -> None:
        self._task = asyncio.get_running_loop().create_task(self._send(outlet))

    def resume(self) -> None:
        self._room.set()

    def close(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def _send(self, outlet: Outlet) -> None:
        try:
            outlet.send(self._opening)
            await self._send_views(outlet, self._first)
            async with aclosing(self._more):
                async for views in self._more:
                    outlet.send(b",")
                    await self._send_views(outlet, views)
            outlet.send(self._closing)
        except ApiError as error:
            log.warning("a list response was aborted half-way: %s", error)
            outlet.abort()
        except Exception:
            log.exception("a list response was aborted half-way")
            outlet.abort()
        else:
            self._task = None  # it has ended
            outlet.finish()

    async def _send_views(self, outlet: Outlet, views: Views) -> None:
        for piece in views.pieces(_PIECE_BYTES):
            outlet.send(piece)
            await asyncio.sleep(0)
            while outlet.backlog() > limits.WRITE_BUFFER:
                self._room.clear()
                await self._room.wait()
