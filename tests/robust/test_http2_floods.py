"""What an HTTP/2 client can do to its connection: floods, slow reading, bodies without end."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest

from instar.base import limits
from instar.base.http2 import frames
from instar.kube.access.attributes import User
from instar.server.http.messages import Request, Response
from tests.support.http2 import (
    MemoryClient,
    code_of,
    data,
    get,
    headers,
    of_kind,
    request_block,
)
from tests.support.http2_handlers import hello, never, raw, run

# --- floods --------------------------------------------------------------------------------------


def opened_and_reset(number: int) -> bytes:
    return get(2 * number + 1) + frames.reset(2 * number + 1, frames.CANCEL)


FLOODS: dict[str, Callable[[int], bytes]] = {
    "requests that are reset at once": opened_and_reset,
    "pings": lambda number: raw(frames.PING, 0, 0, bytes(8)),
    "settings": lambda number: frames.settings({}),
    "windows that move": lambda number: frames.settings({frames.INITIAL_WINDOW: number}),
    "window updates": lambda number: frames.window_update(0, 1),
    "priorities": lambda number: raw(frames.PRIORITY, 0, 1, bytes(5)),
    "frames of extensions": lambda number: raw(0x77, 0, 0),
    "empty continuations": lambda number: (
        headers(1, b"", whole=False) if not number else raw(frames.CONTINUATION, 0, 1)
    ),
    "empty data": lambda number: (
        headers(1, request_block("POST"), last=False) if not number else data(1, b"")
    ),
    "malformed requests": lambda number: headers(2 * number + 1, b"\x82"),
    "data of a reset stream": lambda number: opened_and_reset(0) if not number else data(1, b"x"),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_frames_without_progress_closes_the_connection(name: str) -> None:
    async def script() -> None:
        client = MemoryClient(never)
        number = 0
        while not client.transport.closed:
            client.send(*(FLOODS[name](number + at) for at in range(100)))
            number += 100
            await client.settled(3)
            assert number < 20 * limits.CONTROL_FRAMES, "the flood was not noticed"
        client.lose()

    run(script)


def test_a_flood_in_one_read_leaves_other_connections_their_turn() -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        client.send(raw(frames.PING, 0, 0, bytes(8)) * 1500)

        assert len(client.take()) < 500
        assert not client.transport.reading
        assert len(await client.settled(50)) > 1000
        assert client.transport.reading

    run(script)


def test_usual_work_is_no_flood() -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        for number in range(5000):
            stream = 2 * number + 1
            client.send(get(stream), frames.window_update(0, 5))
            await client.settled(1)

        assert not client.transport.closed

    run(script)


def test_header_blocks_have_an_end() -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        client.send(headers(1, b"", whole=False))
        for _ in range(10):
            client.send(raw(frames.CONTINUATION, 0, 1, bytes(16000)))

        assert code_of(client.take()[-1]) == frames.CALM_DOWN

    run(script)


def test_headers_that_unfold_beyond_the_limit_are_refused_and_the_table_goes_on() -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        entry = b"\x40" + b"\x01a" + b"\x7f\xa1\x1e" + b"v" * 4000
        client.send(headers(1, request_block() + entry + b"\xbe" * 60000))
        found = client.take()
        assert client.fields(found[0])[b":status"] == b"431"
        client.send(headers(3, request_block() + b"\xbe"))

        assert client.fields((await client.settled())[0])[b":status"] == b"200"

    run(script)


def test_streams_above_the_announced_number_are_refused() -> None:
    async def script() -> None:
        client = MemoryClient(never, most_streams=5)
        client.send(*(get(2 * number + 1) for number in range(7)))
        found = await client.settled()

        refused = [(frame.stream, code_of(frame)) for frame in of_kind(found, frames.RST_STREAM)]
        assert refused == [(11, frames.REFUSED_STREAM), (13, frames.REFUSED_STREAM)]
        client.lose()

    run(script)


def test_a_client_that_sends_beyond_its_window_is_stopped() -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        client.send(headers(1, request_block("POST"), last=False))
        client.send(data(1, bytes(limits.STREAM_WINDOW - 1)))
        (update,) = of_kind(client.take(), frames.WINDOW)
        assert (update.stream, frames.read_number(update.payload)) == (1, limits.STREAM_WINDOW - 1)
        client.send(data(1, bytes(100_000)))
        client.send(data(1, bytes(limits.STREAM_WINDOW - 50_000)))
        found = of_kind(client.take(), frames.RST_STREAM)

        assert [code_of(frame) for frame in found] == [frames.FLOW_ERROR]

    run(script)


def test_large_bodies_of_streams_count_together() -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        client.service._most_bodies = 1 << 20
        for number in range(1, 21, 2):
            client.send(headers(number, request_block("POST"), last=False))
            client.send(data(number, bytes(200_000)))
        found = client.take()

        statuses = [client.fields(frame)[b":status"] for frame in of_kind(found, frames.HEADERS)]
        assert statuses
        assert set(statuses) == {b"503"}
        assert client.service._receiving <= 1 << 20
        client.lose()
        assert client.service._receiving == 0

    run(script)


def test_requests_wait_while_the_client_reads_no_responses() -> None:
    served = 0

    async def handler(request: Request, peer: User | None) -> Response:
        nonlocal served
        served += 1
        return Response(200, (bytes(60_000),))

    async def script() -> None:
        client = MemoryClient(handler, opening=frames.settings({frames.INITIAL_WINDOW: 0}))
        for number in range(500):
            client.send(get(2 * number + 1))
            await client.settled(1)
        assert served * 60_000 < limits.UNREAD_ANSWERS + 100_000
        before = served
        client.send(frames.reset(1, frames.CANCEL), frames.reset(3, frames.CANCEL))
        await client.settled()

        assert served > before

    run(script)


# --- time ----------------------------------------------------------------------------------------


def late(client: MemoryClient, seconds: float) -> None:
    client.connection.close_if_stalled(monotonic() + seconds)


def test_a_stream_whose_response_is_not_read_is_reset_after_a_while() -> None:
    async def script() -> None:
        client = MemoryClient(hello, opening=frames.settings({frames.INITIAL_WINDOW: 1}))
        client.send(get(1))
        client.take()
        late(client, 1)
        assert client.take() == []
        late(client, 2 + limits.UNREAD_SECONDS)

        assert [frame.kind for frame in await client.settled()] == [frames.RST_STREAM]

    run(script)


def test_a_body_that_does_not_end_is_reset_after_a_while() -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        client.send(headers(1, request_block("POST"), last=False), data(1, b"x"))
        late(client, limits.BODY_SECONDS - 1)
        assert client.take() == []
        late(client, limits.BODY_SECONDS + 1)

        assert [frame.kind for frame in await client.settled()] == [frames.RST_STREAM]

    run(script)


@pytest.mark.parametrize(
    "beginning", [get(1)[:-1], headers(1, b"\x82", whole=False), frames.HEAD.pack(0, 9, 0, 0, 1)]
)
def test_a_frame_or_block_that_does_not_end_closes_the_connection(beginning: bytes) -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        client.send(beginning)
        late(client, limits.HEAD_SECONDS - 1)
        assert not client.transport.aborted
        late(client, limits.HEAD_SECONDS + 1)

        assert client.transport.aborted

    run(script)


def test_an_idle_connection_is_closed_and_one_with_a_watch_is_not() -> None:
    async def script() -> None:
        idle, busy = MemoryClient(hello), MemoryClient(never)
        busy.send(get(1))
        for client in (idle, busy):
            late(client, limits.IDLE_SECONDS + 1)

        assert idle.transport.closed
        assert not busy.transport.closed
        busy.lose()

    run(script)


def test_a_connection_that_takes_nothing_is_aborted() -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        client.transport.unread = 1000
        late(client, 1)
        late(client, 2 + limits.UNREAD_SECONDS)

        assert client.transport.aborted

    run(script)
