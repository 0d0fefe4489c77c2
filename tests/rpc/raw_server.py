"""An HTTP/2 server that says just what a test has it say, right or wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from instar.base.http2 import frames
from instar.wire.rpc.headers import literal
from tests.support.listening import stop_listening

HEAD = b"\x88" + literal("content-type", "application/grpc")  # :status 200
WELL = literal("grpc-status", "0") + literal("grpc-message", "")


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes


class Peer:
    """One connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def greeted(self, settings: dict[int, int] | None = None) -> None:
        assert await self._reader.readexactly(len(frames.PREFACE)) == frames.PREFACE
        self.send(frames.settings(settings or {}))

    async def next(self) -> Frame:
        high, low, kind, flags, stream = frames.HEAD.unpack(await self._reader.readexactly(9))
        payload = await self._reader.readexactly(high << 16 | low)
        return Frame(kind, flags, stream, payload)

    async def until(self, *kinds: int) -> Frame:
        """The next frame of these kinds; others are passed over."""
        while (found := await self.next()).kind not in kinds:
            pass
        return found

    async def asked(self) -> int:
        """Read one whole call and return its number."""
        while True:
            found = await self.until(frames.DATA)
            if found.flags & frames.END_STREAM:
                return found.stream

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    def answer(self, stream: int, message: bytes) -> None:
        self.send(answer(stream, message))

    async def end(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


def head(stream: int) -> bytes:
    return frames.frame(frames.HEADERS, frames.END_HEADERS, stream, HEAD)


def data(stream: int, payload: bytes, flags: int = 0) -> bytes:
    return frames.frame(frames.DATA, flags, stream, payload)


def trailers(stream: int, block: bytes = WELL) -> bytes:
    return frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream, block)


def message(content: bytes) -> bytes:
    return b"\0" + len(content).to_bytes(4, "big") + content


def answer(stream: int, content: bytes) -> bytes:
    return head(stream) + data(stream, message(content)) + trailers(stream)


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def serving(*scripts: Script) -> AsyncIterator[str]:
    """The address of a server that plays a script for each connection, the last for all others;
    what goes wrong in one fails the test."""
    left, tasks = list(scripts), list[asyncio.Task[None]]()

    async def play(script: Script, peer: Peer) -> None:
        # A client that leaves has said what it had to say.
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await script(peer)
        finally:
            await peer.end()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = left.pop(0) if len(left) > 1 else left[0]
        tasks.append(asyncio.ensure_future(play(script, Peer(reader, writer))))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await stop_listening(server)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
