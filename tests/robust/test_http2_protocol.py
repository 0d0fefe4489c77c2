"""HTTP/2 clients that break the protocol: malformed requests and broken frames."""

from __future__ import annotations

import pytest

from instar.base.http2 import frames
from instar.base.http2.hpack import literal
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
from tests.support.http2_handlers import hello, raw, run


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
