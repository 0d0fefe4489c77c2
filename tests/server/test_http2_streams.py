"""HTTP/2 streams that stay open: watches, bodies that are passed on, and the stop of a server."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from instar.base.http2 import frames
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
from tests.support.http2_handlers import Events, Server, run

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
