"""HTTP/2 connections: requests as frames, responses within the client's windows."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from instar.base import limits
from instar.base.http2 import frames
from instar.base.http2.hpack import literal
from instar.server.http.messages import Response
from tests.support.http2 import (
    MemoryClient,
    body_of,
    data,
    get,
    headers,
    of_kind,
    request_block,
)
from tests.support.http2_handlers import Events, Server, run

# --- requests and responses ------------------------------------------------------------------


def test_a_request_is_answered_with_a_head_and_a_body_in_one_write() -> None:
    async def script() -> None:
        server = Server()
        client = MemoryClient(server, every_answer=[(b"cache-control", b"private")])
        writes = client.transport.writes
        client.send(get(1, "/livez?verbose=1&verbose"))
        head, body = client.take()

        assert client.transport.writes == writes + 1
        fields = client.fields(head)
        assert fields.pop(b"date").endswith(b"GMT")
        assert fields == {
            b":status": b"200",
            b"cache-control": b"private",
            b"content-length": b"5",
        }
        assert (body.payload, body.flags) == (b"livez", frames.END_STREAM)
        (request,) = server.requests
        assert (request.path, request.query) == ("/livez", {"verbose": ["1", ""]})
        assert request.headers == {b"host": b"x"}

    run(script)


def test_headers_are_read_by_the_table_that_earlier_requests_filled() -> None:
    async def script() -> None:
        server = Server()
        client = MemoryClient(server)
        name, value = b"authorization", b"Bearer abc"
        indexed = b"\x40" + bytes((len(name),)) + name + bytes((len(value),)) + value
        client.send(headers(1, request_block() + indexed))
        client.send(headers(3, request_block() + b"\xbe"))
        await client.settled()

        assert [each.headers[b"authorization"] for each in server.requests] == [value, value]

    run(script)


def test_a_body_comes_in_pieces_with_padding_and_trailers_are_ignored() -> None:
    async def script() -> None:
        server = Server()
        client = MemoryClient(server)
        client.send(headers(1, request_block("POST", "/a"), last=False))
        client.send(data(1, b"one "))
        client.send(frames.frame(frames.DATA, frames.PADDED, 1, b"\x03two\0\0\0"))
        assert server.requests == []
        client.send(headers(1, literal(b"authorization", b"Bearer stolen")))
        await client.settled()

        (request,) = server.requests
        assert (request.method, request.body) == ("POST", b"one two")
        assert b"authorization" not in request.headers

    run(script)


def test_a_body_above_the_limit_is_received_and_not_kept() -> None:
    async def script() -> None:
        server = Server()
        client = MemoryClient(server)
        client.send(headers(1, request_block("POST"), last=False))
        piece, received = bytes(limits.STREAM_WINDOW // 2), 0
        while received <= limits.MAX_BODY:
            client.send(data(1, piece))
            received += len(piece)
        client.send(data(1, b"", last=True))
        await client.settled()

        assert server.requests[0].too_large
        assert server.requests[0].body == b""

    run(script)


def test_a_head_request_gets_the_head_alone() -> None:
    async def script() -> None:
        client = MemoryClient(Server(large=Response(200, (bytes(1 << 20),))))
        for stream, path in ((1, "/small"), (3, "/large")):
            client.send(headers(stream, request_block("HEAD", path)))
        heads = await client.settled()

        assert [frame.flags & frames.END_STREAM for frame in heads] == [1, 1]
        sizes = [client.fields(head)[b"content-length"] for head in heads]
        assert sizes == [b"5", b"1048576"]

    run(script)


def test_a_client_that_waits_for_continue_is_told_to_go_on() -> None:
    async def script() -> None:
        client = MemoryClient(Server())
        expect = [(b"expect", b"100-continue"), (b"content-length", b"2")]
        client.send(headers(1, request_block("POST", "/", expect), last=False))
        (informational,) = client.take()
        assert client.fields(informational) == {b":status": b"100"}
        client.send(data(1, b"{}", last=True))

        assert client.fields(client.take()[0])[b":status"] == b"200"

    run(script)


def test_repeated_headers_and_split_cookies_are_read_as_by_http1() -> None:
    async def script() -> None:
        server = Server()
        fields = [(b"a", b"1"), (b"cookie", b"x=1"), (b"a", b"2"), (b"cookie", b"y=2")]
        MemoryClient(server).send(headers(1, request_block(more=fields)))

        assert server.requests[0].all_of(b"a") == ["1", "2"]
        assert server.requests[0].all_of(b"cookie") == ["x=1; y=2"]

    run(script)


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_frames_may_be_cut_anywhere(choices: st.DataObject) -> None:
    block = request_block("POST", "/a", [(b"x", b"y" * 300)])
    stream = frames.PREFACE + frames.settings({}) + frames.window_update(0, 1 << 20)
    stream += frames.frame(frames.HEADERS, 0, 1, block[:20])
    stream += frames.frame(frames.CONTINUATION, 0, 1, block[20:40])
    stream += frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, block[40:])
    stream += data(1, b"body", last=True) + get(3, "/b")

    async def script() -> None:
        server = Server()
        client = MemoryClient(server, opening=b"")
        left = stream
        while left:
            size = choices.draw(st.integers(1, 200))
            client.send(left[:size])
            left = left[size:]
        await client.settled()
        assert [(each.path, each.body) for each in server.requests] == [
            ("/a", b"body"),
            ("/b", b""),
        ]

    run(script)


def test_one_request_of_a_read_is_served_at_once_and_the_others_in_their_turn() -> None:
    async def script() -> None:
        server = Server()
        client = MemoryClient(server)
        client.send(*(get(number) for number in range(1, 21, 2)))
        assert len(server.requests) == 1
        await client.settled()

        assert len(server.requests) == 10

    run(script)


# --- windows -----------------------------------------------------------------------------------


def test_a_response_waits_for_the_window_of_its_stream_and_of_the_connection() -> None:
    async def script() -> None:
        client = MemoryClient(
            Server(a=Response(200, (b"x" * 30,))),
            opening=frames.settings({frames.INITIAL_WINDOW: 10}),
        )
        client.send(get(1, "/a"))
        assert body_of(client.take()) == b"x" * 10
        client.send(frames.window_update(1, 15))
        assert body_of(client.take()) == b"x" * 15
        client.send(frames.settings({frames.INITIAL_WINDOW: 100}))
        last = of_kind(client.take(), frames.DATA)

        assert [(len(frame.payload), frame.flags) for frame in last] == [(5, frames.END_STREAM)]

    run(script)


def test_a_stream_that_is_not_read_leaves_the_others_their_window() -> None:
    async def script() -> None:
        opening = frames.settings({frames.INITIAL_WINDOW: 100}) + frames.window_update(0, 1 << 20)
        client = MemoryClient(Server(large=Response(200, (bytes(1 << 20),))), opening=opening)
        client.send(get(1, "/large"))
        await client.settled()
        client.send(get(3, "/small"))

        assert body_of(await client.settled(), 3) == b"small"

    run(script)


def test_streams_share_a_narrow_connection_frame_by_frame() -> None:
    async def script() -> None:
        opening = frames.settings({frames.INITIAL_WINDOW: 1 << 30})
        large = Response(200, (bytes(200_000),))
        client = MemoryClient(Server(a=large, b=large), opening=opening)
        client.send(get(1, "/a"), get(3, "/b"))
        await client.settled()
        order: list[int] = []
        for _ in range(30):
            client.send(frames.window_update(0, 16384))
            order += [frame.stream for frame in of_kind(await client.settled(3), frames.DATA)]
        middle = order[2:18]

        assert abs(middle.count(1) - middle.count(3)) <= 2

    run(script)


def test_no_more_of_a_response_is_made_than_its_client_reads() -> None:
    made = 0

    def pieces() -> Iterator[bytes]:
        nonlocal made
        for _ in range(1000):
            made += 1
            yield bytes(1 << 16)

    async def script() -> None:
        client = MemoryClient(
            Server(a=Response(200, pieces(), length=1000 << 16)), opening=frames.settings({})
        )
        client.send(get(1, "/a"))
        await client.settled(100)

    run(script)
    assert made < 5


def test_what_a_paused_transport_does_not_take_waits_and_goes_on_later() -> None:
    async def script() -> None:
        client = MemoryClient(Server())
        client.connection.pause_writing()
        client.send(get(1, "/a"))
        assert body_of(client.take()) == b""
        client.connection.resume_writing()

        assert body_of(await client.settled()) == b"a"

    run(script)


def test_an_initial_window_that_shrinks_holds_streams_back() -> None:
    async def script() -> None:
        feed = Events()
        client = MemoryClient(
            Server(watch=Response(200, stream=feed)),
            opening=frames.settings({frames.INITIAL_WINDOW: 10}),
        )
        client.send(get(1, "/watch"))
        assert feed.outlet is not None
        assert feed.outlet.send(b"12345")
        client.send(frames.settings({frames.INITIAL_WINDOW: 0}))
        assert not feed.outlet.send(b"67890")
        assert body_of(await client.settled()) == b"12345"
        client.send(frames.settings({frames.INITIAL_WINDOW: 10}))

        assert body_of(client.take()) == b"67890"
        assert feed.resumed == 1

    run(script)
