"""A connection on its own: answers nobody reads, and requests nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from instar.kube.access.attributes import User
from instar.server.http.http1 import Http1Connection
from instar.server.http.messages import Request, Response
from instar.server.http.protocols import Connections

GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


class Transport:
    """Takes what is written and sends nothing on."""

    def __init__(self) -> None:
        self.unsent = 0
        self.aborted = False
        self.closed = False

    def get_extra_info(self, name: str) -> Any:
        return None

    def set_write_buffer_limits(self, high: int) -> None: ...

    def write(self, data: bytes) -> None:
        self.unsent += len(data)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def connected(handler: Any) -> tuple[Http1Connection, Transport]:
    connection, transport = Http1Connection(Connections(handler)), Transport()
    connection.connection_made(cast(asyncio.BaseTransport, transport))
    return connection, transport


async def unread(now_and_then: int) -> list[bool]:
    async def large(request: Request, peer: User | None) -> Response:
        return Response(200, [b"x" * 100_000] * 100)

    connection, transport = connected(large)
    connection.pause_writing()
    connection.data_received(GET)
    await asyncio.sleep(0)
    aborted = []
    for now in (1000.0, 1050.0, 1070.0):
        connection.close_if_stalled(now)
        transport.unsent -= now_and_then
        aborted.append(transport.aborted)
    connection.connection_lost(None)
    return aborted


def test_a_response_that_is_not_read_is_dropped_after_a_while() -> None:
    assert asyncio.run(unread(now_and_then=0)) == [False, False, True]


def test_a_slow_reader_is_waited_for() -> None:
    assert asyncio.run(unread(now_and_then=1)) == [False, False, False]


async def made_for_who_does_not_read(count: int) -> int:
    """How many pieces of an answer are made before they are waited with."""
    made, settled = 0, asyncio.Event()

    def pieces() -> Iterator[bytes]:
        nonlocal made
        for _ in range(count):
            made += 1
            yield bytes(1 << 16)
        settled.set()

    async def large(request: Request, peer: User | None) -> Response:
        return Response(200, pieces(), length=count << 16)

    class Watched(Http1Connection):
        def pause_writing(self) -> None:
            super().pause_writing()
            settled.set()

    server = await asyncio.get_running_loop().create_server(
        lambda: Watched(Connections(large)), "127.0.0.1", 0
    )
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=1)
    writer.write(GET)
    await asyncio.wait_for(settled.wait(), 60)
    writer.transport.abort()
    server.close()
    return made


def test_no_more_of_an_answer_is_made_than_its_reader_has_room_for() -> None:
    assert asyncio.run(made_for_who_does_not_read(1000)) < 1000


def test_a_connection_is_closed_when_a_response_fails_midway() -> None:
    def pieces() -> Iterator[bytes]:
        yield bytes(100_000)
        raise OSError("the disk is gone")

    async def broken(request: Request, peer: User | None) -> Response:
        return Response(200, pieces(), length=200_000)

    async def asked() -> bool:
        connection, transport = connected(broken)
        connection.data_received(GET)
        for _ in range(5):
            await asyncio.sleep(0)
        return transport.aborted

    assert asyncio.run(asked())


@pytest.mark.parametrize("failure", [asyncio.CancelledError(), ArithmeticError()])
def test_a_request_without_an_answer_does_not_wait_for_one(failure: BaseException) -> None:
    async def fails(request: Request, peer: User | None) -> Response:
        await asyncio.sleep(0)
        raise failure

    async def asked() -> bool:
        connection, transport = connected(fails)
        connection.data_received(GET)
        for _ in range(5):
            await asyncio.sleep(0)
        return transport.aborted

    assert asyncio.run(asked())


def test_requests_sent_at_once_are_all_answered_however_many() -> None:
    async def asked(count: int) -> tuple[int, bool]:
        first_may_go, all_answered = asyncio.Event(), asyncio.Event()
        answered = 0

        async def handler(request: Request, peer: User | None) -> Response:
            nonlocal answered
            answered += 1
            if answered == 1:
                await first_may_go.wait()
            if answered == count:
                all_answered.set()
            return Response(200, (b"x",))

        connection, transport = connected(handler)
        connection.data_received(GET * count)
        first_may_go.set()
        await asyncio.wait_for(all_answered.wait(), 30)
        await asyncio.sleep(0)
        connection.close_when_idle()
        return answered, transport.closed

    assert asyncio.run(asked(2000)) == (2000, True)
