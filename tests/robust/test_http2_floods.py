"""What an HTTP/2 client can do to its connection: malformed requests, broken frames, floods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

import pytest

from instar.base import limits
from instar.base.http2 import frames
from instar.base.http2.hpack import literal
from instar.kube.access.attributes import User
from instar.server.http.messages import Request, Response
from tests.support.http2 import (
    MemoryClient,
    body_of,
    code_of,
    data,
    get,
    headers,
    of_kind,
    request_block,
)

Script = Callable[[], Coroutine[Any, Any, None]]


async def hello(request: Request, peer: User | None) -> Response:
    return Response(200, (b"hello",))


async def never(request: Request, peer: User | None) -> Response:
    await asyncio.sleep(1000)
    raise AssertionError


def run(script: Script) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await script()

    asyncio.run(bounded())


def pseudo(**fields: str) -> bytes:
    return b"".join(literal(b":" + name.encode(), value.encode()) for name, value in fields.items())


GIVEN = pseudo(method="GET", scheme="https", path="/")
MALFORMED = {
    "no path": pseudo(method="GET", scheme="https"),
    "an empty path": pseudo(method="GET", scheme="https", path=""),
    "a path without a slash": pseudo(method="GET", scheme="https", path="api"),
    "a line break in the path": pseudo(method="GET", scheme="https", path="/a\nb"),
    "no method": pseudo(scheme="https", path="/"),
    "a space in the method": pseudo(method="GE T", scheme="https", path="/"),
    "no scheme": pseudo(method="GET", path="/"),
    "two paths": GIVEN + pseudo(path="/other"),
    "an unknown pseudo-header": GIVEN + pseudo(protocol="websocket"),
    "a response's pseudo-header": GIVEN + pseudo(status="200"),
    "a pseudo-header behind a header": GIVEN + literal(b"a", b"b") + pseudo(authority="x"),
    "an upper-case name": GIVEN + literal(b"Accept", b"b"),
    "an empty name": GIVEN + literal(b"", b"b"),
    "a space in a name": GIVEN + literal(b"a b", b"c"),
    "a line break in a value": GIVEN + literal(b"a", b"b\r\nc: d"),
    "a zero in a value": GIVEN + literal(b"a", b"\0"),
    "a header of HTTP/1.1": GIVEN + literal(b"connection", b"close"),
    "a transfer encoding": GIVEN + literal(b"transfer-encoding", b"chunked"),
    "te other than trailers": GIVEN + literal(b"te", b"gzip"),
    "a length that is no number": GIVEN + literal(b"content-length", b"+1"),
    "two lengths": GIVEN + literal(b"content-length", b"0") + literal(b"content-length", b"1"),
    "a length without a body": GIVEN + literal(b"content-length", b"1"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_resets_its_stream_alone(name: str) -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        client.send(headers(1, MALFORMED[name]), get(3))
        found = await client.settled()

        assert [(frame.stream, code_of(frame)) for frame in of_kind(found, frames.RST_STREAM)] == [
            (1, frames.PROTOCOL_ERROR)
        ]
        assert body_of(found, 3) == b"hello"

    run(script)


@pytest.mark.parametrize("body", [b"1", b"123"])
def test_a_body_of_another_length_than_announced_resets_its_stream(body: bytes) -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        block = request_block("POST", "/", [(b"content-length", b"2")])
        client.send(headers(1, block, last=False), data(1, body, last=True))
        (reset,) = await client.settled()

        assert (reset.kind, code_of(reset)) == (frames.RST_STREAM, frames.PROTOCOL_ERROR)

    run(script)


def raw(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return frames.frame(kind, flags, stream, payload)


BROKEN = {
    "data of stream 0": (data(0, b"x"), frames.PROTOCOL_ERROR),
    "data of a stream that was not opened": (data(5, b"x"), frames.PROTOCOL_ERROR),
    "a request on an even stream": (get(2), frames.PROTOCOL_ERROR),
    "a request on stream 0": (get(0), frames.PROTOCOL_ERROR),
    "a header block that lies": (headers(1, b"\xff\xff\xff\xff\xff\xff"), frames.COMPRESSION_ERROR),
    "a table larger than allowed": (headers(1, b"\x3f\xe2\x1f"), frames.COMPRESSION_ERROR),
    "headers that are interrupted": (
        headers(1, request_block(), whole=False) + raw(frames.PING, 0, 0, bytes(8)),
        frames.PROTOCOL_ERROR,
    ),
    "a continuation of nothing": (
        raw(frames.CONTINUATION, frames.END_HEADERS, 1, b"\x82"),
        frames.PROTOCOL_ERROR,
    ),
    "more padding than frame": (
        headers(1, request_block("POST"), last=False)
        + raw(frames.DATA, frames.PADDED, 1, b"\x05abc"),
        frames.PROTOCOL_ERROR,
    ),
    "a frame above the announced size": (
        frames.HEAD.pack(0xFF, 0xFFFF, frames.DATA, 0, 1),
        frames.FRAME_SIZE_ERROR,
    ),
    "a ping of another size": (raw(frames.PING, 0, 0, b"x"), frames.FRAME_SIZE_ERROR),
    "a window update of another size": (raw(frames.WINDOW, 0, 0, b"x"), frames.FRAME_SIZE_ERROR),
    "a window of the connection that grows by nothing": (
        frames.window_update(0, 0),
        frames.FLOW_ERROR,
    ),
    "a window without end": (frames.window_update(0, 2**31 - 1) * 2, frames.FLOW_ERROR),
    "settings of a stream": (raw(frames.SETTINGS, 0, 1), frames.PROTOCOL_ERROR),
    "half a setting": (raw(frames.SETTINGS, 0, 0, b"abc"), frames.FRAME_SIZE_ERROR),
    "a window above the largest": (
        frames.settings({frames.INITIAL_WINDOW: 2**31}),
        frames.FLOW_ERROR,
    ),
    "a frame size out of range": (frames.settings({frames.MAX_FRAME: 1}), frames.PROTOCOL_ERROR),
    "a push": (raw(frames.PUSH_PROMISE, 0, 1, bytes(4)), frames.PROTOCOL_ERROR),
    "a reset of a stream that was not opened": (frames.reset(7, 0), frames.PROTOCOL_ERROR),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_connection_that_breaks_the_protocol_is_told_why_and_closed(name: str) -> None:
    async def script() -> None:
        client = MemoryClient(hello)
        sent, code = BROKEN[name]
        client.send(sent)
        goaway = client.take()[-1]

        assert (goaway.kind, code_of(goaway)) == (frames.GOAWAY, code)
        assert client.transport.closed
        client.send(get(99))
        assert client.take() == [], "nothing more is read"

    run(script)


@pytest.mark.parametrize(
    "greeting", [b"GET / HTTP/1.1\r\n\r\n", frames.PREFACE + get(1), b"PRI * HTTP/1.0\r\n"]
)
def test_a_client_that_does_not_greet_is_disconnected(greeting: bytes) -> None:
    async def script() -> None:
        client = MemoryClient(hello, opening=b"")
        client.take()
        client.send(greeting)

        assert code_of(client.take()[-1]) == frames.PROTOCOL_ERROR
        assert client.transport.closed

    run(script)


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
