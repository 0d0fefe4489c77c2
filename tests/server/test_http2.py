"""HTTP/2 connections: requests as frames, responses within the client's windows, the end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.base import limits
from instar.base.http2 import frames
from instar.base.http2.hpack import literal
from instar.kube.access.attributes import User
from instar.server.http.messages import Outlet, Request, Response
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


def run(script: Script) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await script()

    asyncio.run(bounded())


class Server:
    """A handler that keeps its requests and answers by path."""

    def __init__(self, **answers: Response) -> None:
        self.requests: list[Request] = []
        self._answers = answers

    async def __call__(self, request: Request, peer: User | None) -> Response:
        self.requests.append(request)
        path = request.path.strip("/")
        return self._answers.get(path) or Response(200, (path.encode() or b"hello",))


class Events:
    """A stream of events, which a test sends."""

    def __init__(self) -> None:
        self.outlet: Outlet | None = None
        self.resumed = 0
        self.closed = False

    def open(self, outlet: Outlet) -> None:
        self.outlet = outlet

    def resume(self) -> None:
        self.resumed += 1

    def close(self) -> None:
        self.closed = True


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


# --- watches -----------------------------------------------------------------------------------


def test_an_event_for_500_watches_of_a_connection_is_few_writes() -> None:
    async def script() -> None:
        feeds = [Events() for _ in range(500)]
        answers = {f"w{at}": Response(200, stream=feed) for at, feed in enumerate(feeds)}
        client = MemoryClient(Server(**answers))
        for at in range(500):
            client.send(get(2 * at + 1, f"/w{at}"))
        await client.settled(600)
        writes = client.transport.writes
        for feed in feeds:
            assert feed.outlet is not None
            feed.outlet.send(b"x" * 400)
        found = await client.settled()

        assert len(of_kind(found, frames.DATA)) == 500
        assert client.transport.writes - writes <= 5

    run(script)


def test_the_end_of_a_watch_ends_its_stream_and_no_other() -> None:
    async def script() -> None:
        feed = Events()
        client = MemoryClient(Server(watch=Response(200, stream=feed)))
        client.send(get(1, "/watch"))
        assert feed.outlet is not None
        feed.outlet.send(b"event")
        feed.outlet.finish()
        client.send(get(3, "/a"))
        found = await client.settled()

        assert [frame.flags for frame in of_kind(found, frames.DATA) if frame.stream == 1] == [0, 1]
        assert body_of(found, 3) == b"a"

    run(script)


def test_a_watch_that_is_reset_by_the_client_is_closed() -> None:
    async def script() -> None:
        feed = Events()
        client = MemoryClient(Server(watch=Response(200, stream=feed)))
        client.send(get(1, "/watch"))
        client.send(frames.reset(1, frames.CANCEL))
        client.take()
        assert feed.closed
        assert feed.outlet is not None
        feed.outlet.send(b"late")
        feed.outlet.finish()

        assert await client.settled() == []

    run(script)


def test_a_watch_that_is_cut_off_resets_its_stream() -> None:
    async def script() -> None:
        feed = Events()
        client = MemoryClient(Server(watch=Response(200, stream=feed)))
        client.send(get(1, "/watch"))
        client.take()
        assert feed.outlet is not None
        feed.outlet.abort()
        (reset,) = await client.settled()

        assert (reset.kind, code_of(reset)) == (frames.RST_STREAM, frames.INTERNAL_ERROR)
        assert feed.closed
        assert not client.transport.closed

    run(script)


def test_a_lost_connection_ends_watches_and_cancels_requests() -> None:
    async def script() -> None:
        feed, cancelled = Events(), asyncio.Event()

        async def handler(request: Request, peer: User | None) -> Response:
            if request.path == "/watch":
                return Response(200, stream=feed)
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return Response(200)

        client = MemoryClient(handler)
        client.send(get(1, "/watch"))
        client.send(get(3, "/slow"))
        await client.settled()
        client.lose()
        await asyncio.wait_for(cancelled.wait(), 10)

        assert feed.closed

    run(script)


@pytest.mark.parametrize("failure", [asyncio.CancelledError(), ArithmeticError()])
def test_a_request_without_an_answer_resets_its_stream(failure: BaseException) -> None:
    async def script() -> None:
        async def fails(request: Request, peer: User | None) -> Response:
            await asyncio.sleep(0)
            raise failure

        client = MemoryClient(fails)
        client.send(get(1))
        (reset,) = await client.settled()

        assert (reset.kind, code_of(reset)) == (frames.RST_STREAM, frames.INTERNAL_ERROR)

    run(script)


def test_a_response_that_fails_midway_resets_its_stream() -> None:
    def pieces() -> Iterator[bytes]:
        yield bytes(100_000)
        raise OSError("the disk is gone")

    async def script() -> None:
        client = MemoryClient(Server(a=Response(200, pieces(), length=200_000)))
        client.send(get(1, "/a"))
        found = await client.settled()

        assert [code_of(frame) for frame in of_kind(found, frames.RST_STREAM)] == [2]
        assert not client.transport.closed

    run(script)


# --- bodies that are passed on -------------------------------------------------------------------


class Slow:
    """A sink that takes nothing until it is told to."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.takes = False
        self.ended = self.failed = False

    def take(self, data: bytes) -> bool:
        self.taken.append(data)
        return self.takes

    def end(self) -> None:
        self.ended = True

    def broken(self, error: Exception) -> None:
        self.failed = True


def test_a_body_that_is_passed_on_widens_its_window_as_the_backend_takes_it() -> None:
    async def script() -> None:
        server, sink = Server(), Slow()
        client = MemoryClient(server)
        client.service.streamed.wanted = lambda target: target.startswith(b"/proxied")
        go_on = asyncio.Event()

        async def handler(request: Request, peer: User | None) -> Response:
            server.requests.append(request)
            await go_on.wait()
            return Response(200, (b"done",))

        client.service.handler = handler
        client.send(headers(1, request_block("POST", "/proxied"), last=False))
        (request,) = server.requests
        assert request.incoming is not None
        request.incoming.attach(sink)
        client.send(*(data(1, bytes(60_000)) for _ in range(4)))
        assert of_kind(client.take(), frames.WINDOW) == []
        sink.takes = True
        request.incoming.resume()
        widened = of_kind(await client.settled(), frames.WINDOW)
        assert [frame.stream for frame in widened] == [1]
        client.send(data(1, b"end", last=True))
        go_on.set()
        found = await client.settled()

        assert sink.ended
        assert sum(map(len, sink.taken)) == 240_003
        assert body_of(found) == b"done"

    run(script)


def test_a_response_before_the_end_of_a_body_that_is_passed_on_stops_the_client() -> None:
    async def script() -> None:
        server, sink = Server(), Slow()
        client = MemoryClient(server)
        client.service.streamed.wanted = lambda target: True
        client.send(headers(1, request_block("POST", "/a"), last=False))
        found = await client.settled()

        assert body_of(found) == b"a"
        assert [code_of(frame) for frame in of_kind(found, frames.RST_STREAM)] == [0]
        incoming = server.requests[0].incoming
        assert incoming is not None
        incoming.attach(sink)
        assert sink.failed

    run(script)


# --- the stop ------------------------------------------------------------------------------------


def test_an_idle_connection_is_told_and_closed_at_the_stop() -> None:
    async def script() -> None:
        client = MemoryClient(Server())
        client.send(get(1))
        client.take()
        assert client.connection.close_when_idle()
        (goaway,) = client.take()

        assert (goaway.kind, code_of(goaway)) == (frames.GOAWAY, frames.NO_ERROR)
        assert frames.read_number(goaway.payload) == 1
        assert client.transport.closed

    run(script)


def test_a_stop_serves_what_was_asked_and_no_more() -> None:
    async def script() -> None:
        go_on = asyncio.Event()

        async def slow(request: Request, peer: User | None) -> Response:
            await go_on.wait()
            return Response(200, (request.path.encode(),))

        client = MemoryClient(slow)
        client.send(get(1, "/a"))
        await client.settled()
        assert not client.connection.close_when_idle()
        client.send(get(3, "/b"))
        assert not client.transport.closed
        go_on.set()
        found = await client.settled()

        assert body_of(found, 1) == b"/a"
        assert [frame for frame in found if frame.stream == 3] == []
        assert client.transport.closed

    run(script)


def test_a_connection_that_is_lost_is_freed_at_once() -> None:
    async def script() -> None:
        feed = Events()
        client = MemoryClient(Server(watch=Response(200, stream=feed)))
        client.send(get(1, "/watch"), get(3, "/a"))
        await client.settled()
        client.lose()
        feed.outlet = None
        freed = weakref.ref(client.connection)
        del client.connection
        assert freed() is None

    gc.collect()
    gc.disable()
    try:
        run(script)
    finally:
        gc.enable()
