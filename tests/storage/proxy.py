"""A TCP proxy that can swallow what either side says, while both connections stand."""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress


class Proxy:
    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self.swallow_requests = False
        self.swallow_answers = False
        self._held: list[tuple[asyncio.StreamWriter, bytes]] = []
        self.swallowed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def deliver_late(self) -> None:
        """The first of the requests that were swallowed, as by a member that was stopped with it
        in its buffers; that it was given up meanwhile is not delivered."""
        target, data = self._held[0]
        target.write(data)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:  # the target is gone
            writer.close()
            return
        for work in (self._up(reader, there_writer), self._down(there_reader, writer)):
            task = asyncio.ensure_future(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _up(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError), closing(target):
            while data := await source.read(65536):
                if self.swallow_requests:
                    self._held.append((target, data))
                    self.swallowed.set()
                else:
                    target.write(data)

    async def _down(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError), closing(target):
            while data := await source.read(65536):
                if self.swallow_answers:
                    self.swallowed.set()
                else:
                    target.write(data)
