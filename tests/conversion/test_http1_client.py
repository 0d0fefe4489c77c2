"""One connection to a webhook: packed content takes turns of the event loop."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from instar.wire.webhooks.http1_client import ClientConnection
from instar.wire.webhooks.http1_response import (
    AnswerReader,
    CutShort,
    HttpResponse,
    MalformedResponse,
)

SIZE = 8 << 20
BOMB = gzip.compress(bytes(SIZE), mtime=0)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
SIZED = HEAD + b"Content-Length: %d\r\n\r\n" % len(BOMB)


class Transport:
    """Knows whether it is read."""

    def __init__(self) -> None:
        self.reading, self.aborted = True, False

    def write(self, data: bytes) -> None: ...

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True


def asked() -> tuple[ClientConnection, Any, asyncio.Future[HttpResponse]]:
    connection, transport = ClientConnection("h:1"), Transport()
    connection.connection_made(transport)  # type: ignore[arg-type]
    return connection, transport, connection.send(b"GET / HTTP/1.1\r\n\r\n", AnswerReader(SIZE))


def test_packed_content_is_unpacked_in_turns_and_not_read_meanwhile() -> None:
    async def scenario() -> None:
        connection, transport, answer = asked()
        connection.data_received(SIZED + BOMB)
        assert (answer.done(), transport.reading) == (False, False)
        assert (await answer).body == bytes(SIZE)
        assert (transport.reading, connection.reusable) == (True, True)

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [1, 100, 4096, 5000])
def test_packed_content_may_come_in_any_pieces(size: int) -> None:
    async def scenario() -> None:
        connection, _, answer = asked()
        data = SIZED + BOMB
        for at in range(0, len(data), size):
            connection.data_received(data[at : at + size])
        assert (await answer).body == bytes(SIZE)

    asyncio.run(scenario())


def test_an_end_in_the_middle_of_the_turns_still_completes_the_answer() -> None:
    async def scenario() -> None:
        connection, _, answer = asked()
        connection.data_received(HEAD + b"\r\n" + BOMB)
        connection.eof_received()
        assert (await answer).body == bytes(SIZE)

    asyncio.run(scenario())


def test_a_connection_lost_in_the_middle_of_the_turns_fails_a_cut_answer() -> None:
    async def scenario() -> None:
        connection, _, answer = asked()
        connection.data_received((SIZED + BOMB)[:-10])
        connection.connection_lost(None)
        with pytest.raises(CutShort):
            await answer

    asyncio.run(scenario())


def test_bytes_after_a_packed_answer_are_never_part_of_the_next() -> None:
    async def scenario() -> None:
        connection, transport, answer = asked()
        connection.data_received(SIZED + BOMB + b"HTTP/1.1 200 OK\r\n" * 1000)
        assert (await answer).body == bytes(SIZE)
        await asyncio.sleep(0)
        assert (transport.aborted, connection.reusable) == (True, False)

    asyncio.run(scenario())


def test_a_broken_answer_ends_the_connection() -> None:
    async def scenario() -> None:
        connection, transport, answer = asked()
        connection.data_received(b"no response at all\r\n" * 1000)
        with pytest.raises(MalformedResponse):
            await answer
        assert transport.aborted

    asyncio.run(scenario())
