"""TCP proxies for tests that stand between a store and its database.

``ForwardingProxy`` accepts connections, opens one to the target for each, and closes all of them
when it stops, also those that were accepted in the last moment. ``Proxy`` is the one that can
swallow what either side says while both connections stand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import closing, suppress

from tests.support.listening import stop_listening


class ForwardingProxy:
    """Pairs of connections; a subclass says how bytes pass between the two of a pair."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Close the listener and every connection, whatever its task was doing."""
        await stop_listening(self._server)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        # A task that was cancelled before its first step has closed nothing.
        for writer in self._open:
            writer.close()
        for writer in self._open:
            with suppress(OSError):
                await writer.wait_closed()
        self._open.clear()

    def _passing(
        self,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> Iterable[Coroutine[None, None, None]]:
        """Return what carries bytes up and down for one pair of connections."""
        raise NotImplementedError

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        self._run(self._connect(reader, writer))

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(self._host, self._port)
        except OSError:  # the target is gone
            writer.close()
            return
        self._open.add(there[1])
        for work in self._passing((reader, writer), there):
            self._run(work)

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Proxy(ForwardingProxy):
    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.swallow_requests = False
        self.swallow_answers = False
        self._held: list[tuple[asyncio.StreamWriter, bytes]] = []
        self._pairs = self._frozen = 0
        self.swallowed = asyncio.Event()

    def freeze(self) -> None:
        """Go silent on every connection that is open now: nothing passes on them any more, and
        nothing says so. New connections work."""
        self._frozen = self._pairs

    def deliver_late(self) -> None:
        """The first of the requests that were swallowed, as by a member that was stopped with it
        in its buffers; that it was given up meanwhile is not delivered."""
        target, data = self._held[0]
        target.write(data)

    def _passing(
        self,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> Iterable[Coroutine[None, None, None]]:
        self._pairs += 1
        number = self._pairs
        return self._up(here[0], there[1], number), self._down(there[0], here[1], number)

    async def _up(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, number: int
    ) -> None:
        with suppress(ConnectionError), closing(target):
            while data := await source.read(65536):
                if number <= self._frozen:
                    continue
                if self.swallow_requests:
                    self._held.append((target, data))
                    self.swallowed.set()
                else:
                    target.write(data)

    async def _down(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, number: int
    ) -> None:
        with suppress(ConnectionError), closing(target):
            while data := await source.read(65536):
                if number <= self._frozen:
                    continue
                if self.swallow_answers:
                    self.swallowed.set()
                else:
                    target.write(data)
