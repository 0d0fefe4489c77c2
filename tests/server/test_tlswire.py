"""TLS over buffers that all connections share: everybody gets theirs, nobody what is another's."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from instar.base import limits
from instar.server.files.certificates import ensure_certificates, server_context
from instar.server.http import tls_transport
from instar.server.http.loop_budget import LoopBudget
from instar.server.http.tls_transport import TlsListener, TlsTransport

Plain = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Loop = Callable[[], asyncio.AbstractEventLoop]
LOOPS: list[Loop] = [uvloop.new_event_loop, asyncio.new_event_loop]


class Echo(asyncio.Protocol):
    """Says back what it hears; who says goodbye is left."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)
        if b"bye" in data:
            self.transport.close()


class Client:
    """TLS by hand over a plain connection: what is sent can be cut anywhere."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    async def connect(self, plain: Plain) -> None:
        self.reader, self.writer = plain
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._exchange()
            else:
                self.send(self.outgoing.read())
                return

    async def _exchange(self) -> None:
        self.send(self.outgoing.read())
        data = await self.reader.read(1 << 16)
        if not data:
            raise ConnectionResetError
        self.incoming.write(data)

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def sealed(self, text: bytes) -> bytes:
        self.tls.write(text)
        return self.outgoing.read()

    async def hear(self, size: int) -> bytes:
        heard = b""
        while len(heard) < size:
            try:
                piece = self.tls.read(size)
                if not piece:
                    raise EOFError  # said in TLS, not by a connection that breaks
                heard += piece
            except ssl.SSLWantReadError:
                await self._exchange()
        return heard


class Door:
    """Opens connections to the server, and closes them all at the end."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._port, self._context = port, context
        self._writers: list[asyncio.StreamWriter] = []

    async def plain(self) -> Plain:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers.append(writer)
        return reader, writer

    async def client(self) -> Client:
        client = Client(self._context)
        await client.connect(await self.plain())
        return client

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


Script = Callable[[Door], Coroutine[Any, Any, None]]


@pytest.fixture(params=LOOPS, ids=["uvloop", "asyncio"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Script], None]:
    made = ensure_certificates(tmp_path, ["localhost"])
    client = ssl.create_default_context(cafile=str(made.ca))
    context = server_context(made, ())

    async def serve(script: Script) -> None:
        listener = TlsListener(lambda: context, lambda _: Echo())
        loop = asyncio.get_running_loop()
        server = await loop.create_server(listener, "127.0.0.1", 0)
        async with server, asyncio.timeout(20):
            door = Door(server.sockets[0].getsockname()[1], client)
            await script(door)
            await door.close()
        assert not listener.incoming.pending
        assert not listener.outgoing.pending

    def run(script: Script) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(serve(script))

    return run


def test_a_record_whose_last_byte_comes_alone_is_read_at_once(
    served: Callable[[Script], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def heard(self: Echo, data: bytes) -> None:
        sizes.append(len(data))
        self.transport.write(data)

    monkeypatch.setattr(Echo, "data_received", heard)
    asked: list[int] = []
    read = ssl.SSLObject.read

    def counted(self: ssl.SSLObject, size: int = 1024, *more: Any) -> bytes:
        if self.server_side:
            asked.append(size)
        return read(self, size, *more)

    async def script(door: Door) -> None:
        client = await door.client()
        sealed = client.sealed(b"x" * 16_000)
        client.send(sealed[:-1])
        await client.writer.drain()
        await asyncio.sleep(0.05)  # nothing tells when the first part has arrived
        monkeypatch.setattr(ssl.SSLObject, "read", counted)
        client.send(sealed[-1:])
        await client.hear(16_000)

    served(script)

    assert sizes == [16_000]
    assert len(asked) <= 2


def test_records_of_several_connections_that_come_in_pieces_are_not_mixed_up(
    served: Callable[[Script], None],
) -> None:
    async def script(door: Door) -> None:
        clients = [await door.client() for _ in range(3)]
        texts = [bytes([65 + number]) * 40_000 for number in range(3)]
        sealed = [client.sealed(text) for client, text in zip(clients, texts, strict=True)]
        for start in range(0, max(map(len, sealed)), 7_001):
            for client, data in zip(clients, sealed, strict=True):
                client.send(data[start : start + 7_001])
                await client.writer.drain()

        heard = [await client.hear(40_000) for client in clients]

        assert heard == texts

    served(script)


def test_a_client_without_tls_is_disconnected_and_others_are_served(
    served: Callable[[Script], None],
) -> None:
    async def script(door: Door) -> None:
        client = await door.client()
        reader, writer = await door.plain()
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while await reader.read(100):
                pass
        client.send(client.sealed(b"still here"))

        assert await client.hear(10) == b"still here"

    served(script)


def test_a_damaged_record_ends_its_connection_alone(served: Callable[[Script], None]) -> None:
    async def script(door: Door) -> None:
        damaged, client = await door.client(), await door.client()
        record = damaged.sealed(b"x" * 100)
        damaged.send(record[:-1] + bytes([record[-1] ^ 1]) + damaged.sealed(b"more"))
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await damaged.hear(1)
        client.send(client.sealed(b"still here"))

        assert await client.hear(10) == b"still here"

    served(script)


def test_a_handshake_has_its_time(
    served: Callable[[Script], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", 0.05)

    async def script(door: Door) -> None:
        reader, _ = await door.plain()

        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""

    served(script)


def test_many_handshakes_at_once_take_several_turns(
    served: Callable[[Script], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood of new connections leaves room in each turn for the requests of others."""
    clock = itertools.count()
    monkeypatch.setattr(tls_transport, "monotonic", clock.__next__)
    monkeypatch.setattr(tls_transport, "LoopBudget", lambda: LoopBudget(3, clock.__next__))
    turn, steps, done = [0], Counter[int](), list[bool]()
    process = TlsTransport._process

    def counted(self: TlsTransport, received: bytes | memoryview) -> None:
        steps[turn[0]] += self._above is None
        process(self, received)

    monkeypatch.setattr(TlsTransport, "_process", counted)

    async def script(door: Door) -> None:
        loop = asyncio.get_running_loop()

        def count_turn() -> None:
            turn[0] += 1
            if not done:
                loop.call_soon(count_turn)

        count_turn()
        clients = await asyncio.gather(*(door.client() for _ in range(30)))
        for client in clients:
            client.send(client.sealed(b"hello"))

        assert [await client.hear(5) for client in clients] == [b"hello"] * 30
        done.append(True)

    served(script)

    assert sum(steps.values()) >= 60
    assert max(steps.values()) <= 4


def test_close_notify_is_sent_after_all_data(served: Callable[[Script], None]) -> None:
    async def script(door: Door) -> None:
        client = await door.client()
        client.send(client.sealed(b"x" * 15_000 + b"bye"))
        client.send(client.sealed(b"nobody listens to this"))

        assert (await client.hear(15_003))[:15_003] == b"x" * 15_000 + b"bye"
        with pytest.raises(EOFError):
            await client.hear(1_000)  # the rest, where both came together

    served(script)


def test_a_client_that_says_goodbye_is_left(served: Callable[[Script], None]) -> None:
    async def script(door: Door) -> None:
        client = await door.client()
        with contextlib.suppress(ssl.SSLWantReadError):
            client.tls.unwrap()
        client.send(client.outgoing.read())

        await client.reader.read()  # to the end, which comes

    served(script)
