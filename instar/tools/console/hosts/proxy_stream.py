"""Streams a cluster's response (a list or a watch) to the browser, no faster than the browser
reads.

Used by ``kubeconfig.py``.
"""

from __future__ import annotations

import asyncio
import logging

from instar.base import limits
from instar.base.supervision import report_failure
from instar.server.http.messages import Outlet
from instar.wire.client.http import OpenedResponse
from instar.wire.client.transport import ConnectionLost

log = logging.getLogger(__name__)


class ProxiedStream:
    """Response body that forwards the cluster's response; implements ``Feed``."""

    def __init__(self, opened: OpenedResponse) -> None:
        self._opened = opened
        self._outlet: Outlet | None = None
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()

    def open(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._task = asyncio.get_running_loop().create_task(self._forward(outlet))

    def resume(self) -> None:
        self._room.set()

    def close(self) -> None:
        self._outlet = None
        self._opened.close()
        if self._task is not None:
            self._task.cancel()

    async def _forward(self, outlet: Outlet) -> None:
        try:
            async for chunk in self._opened.chunks():
                outlet.send(chunk)
                while outlet.backlog() > limits.WRITE_BUFFER:
                    self._room.clear()
                    await self._room.wait()
        except ConnectionLost as error:
            # Abort the connection, so that a truncated response does not look complete.
            log.info(
                "the cluster's response ended early, aborting the browser's connection: %s", error
            )
            outlet.abort()
            return
        except Exception as error:
            report_failure("console", error)
            outlet.abort()
            return
        self._task = None
        outlet.finish()
