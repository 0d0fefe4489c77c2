"""A server in the test's own loop that does what the test says, byte by byte."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import trustme

from instar.wire.webhooks.dialer import Dialer
from instar.wire.webhooks.https import HttpsClient, tls_context
from instar.wire.webhooks.resolver import ServiceResolver
from tests.support.listening import stop_listening

PATIENCE = 60.0
AUTHORITY = trustme.CA()
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Caller:
    """One accepted connection, seen from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.requests: list[bytes] = []

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def request(self) -> bytes:
        head = await self.head()
        _, _, length = head.lower().partition(b"content-length: ")
        request = head + await self.reader.readexactly(int(length.split(b"\r\n")[0]))
        self.requests.append(request)
        return request

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def hang_up(self) -> None:
        """Without a goodbye."""
        self.writer.transport.abort()

    def reset(self) -> None:
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def left(self) -> None:
        """Returns when the other side has hung up; what it sends until then is thrown away."""
        while await self.reader.read(65536):
            continue


Behaviour = Callable[[Caller], Awaitable[None]]
Run = Callable[[Coroutine[Any, Any, None]], None]
"""The fixture ``run``: each test runs on both event loops."""


class Server:
    def __init__(self, port: int) -> None:
        self.port = port
        self.callers: list[Caller] = []

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/convert?timeout=30s"

    @property
    def requests(self) -> int:
        return sum(len(caller.requests) for caller in self.callers)


@asynccontextmanager
async def served(behaviour: Behaviour, *, tls: bool = True) -> AsyncIterator[Server]:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller = Caller(reader, writer)
        server.callers.append(caller)
        try:
            await behaviour(caller)
        except (OSError, asyncio.IncompleteReadError):
            """The client left, which it may."""
        finally:
            caller.hang_up()

    context = server_tls() if tls else None
    listening = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    server = Server(listening.sockets[0].getsockname()[1])
    try:
        async with asyncio.timeout(PATIENCE):
            yield server
    finally:
        await stop_listening(listening)
        for caller in server.callers:
            caller.hang_up()


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


@asynccontextmanager
async def client(
    proxy: str | None = None, *, most_bytes: int = 1_000_000
) -> AsyncIterator[HttpsClient]:
    bundle = base64.b64encode(AUTHORITY.cert_pem.bytes()).decode()
    dialer = Dialer(None, ServiceResolver())
    made = HttpsClient(tls_context(bundle, None), dialer, proxy, most_bytes)
    try:
        yield made
    finally:
        await made.close()


async def answer_all(caller: Caller) -> None:
    while True:
        await caller.request()
        caller.send(OK)
