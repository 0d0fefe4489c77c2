"""Servers that hang, lie, leave or stop in the middle: what a call then says of itself.

``unsent`` is a promise, so it is as important where it must not be given.
"""

from __future__ import annotations

import asyncio
import socket

import pytest

from instar.base.http2 import frames
from instar.wire.rpc import connection as connections
from instar.wire.rpc.channel import GrpcChannel
from instar.wire.rpc.headers import literal
from instar.wire.rpc.status import GrpcCode, RpcError
from tests.rpc.raw_server import HEAD, Peer, Script, answer, data, head, message, serving, trailers

pytestmark = pytest.mark.anyio


async def failure_of(script: Script, patience: float = 5.0) -> RpcError:
    async with serving(script) as address:
        channel = GrpcChannel(address)
        with pytest.raises(RpcError) as caught:
            await channel.call("/s/m", b"request", patience)
        await channel.close()
    return caught.value


def saying(*parts: bytes) -> Script:
    """A server that answers the first call with these bytes and then leaves."""

    async def play(peer: Peer) -> None:
        await peer.greeted()
        assert await peer.asked() == 1
        for part in parts:
            peer.send(part)
        await peer.end()

    return play


# -- nothing was sent


async def test_a_refused_connection_means_the_call_was_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"127.0.0.1:{gone.getsockname()[1]}"
    channel = GrpcChannel(address)
    for _ in range(2):
        with pytest.raises(RpcError, match="failed to connect") as caught:
            await channel.call("/s/m", b"", 5)
        assert caught.value.unsent
    await channel.close()


async def test_to_a_server_that_does_not_say_hello_nothing_is_sent() -> None:
    async def silent(peer: Peer) -> None:
        await peer._reader.readexactly(len(frames.PREFACE))
        assert (await peer.next()).kind == frames.SETTINGS
        assert (await peer.next()).kind == frames.WINDOW
        await peer.next()
        raise AssertionError("a call to a server that has said nothing")

    failure = await failure_of(silent, patience=0.2)
    assert failure.unsent


@pytest.mark.parametrize("hello", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", answer(1, b"x")])
async def test_to_a_server_of_another_protocol_nothing_is_sent(hello: bytes) -> None:
    async def other(peer: Peer) -> None:
        peer.send(hello)
        await peer.end()

    assert (await failure_of(other)).unsent


async def test_a_call_the_server_refuses_to_begin_was_not_carried_out() -> None:
    assert (await failure_of(saying(frames.reset(1, frames.REFUSED_STREAM)))).unsent


async def test_calls_after_the_last_a_leaving_server_took_were_not_carried_out() -> None:
    async def leaving(peer: Peer) -> None:
        await peer.greeted()
        first, _ = await peer.asked(), await peer.asked()
        peer.send(frames.frame(frames.GOAWAY, 0, 0, bytes((0, 0, 0, first, 0, 0, 0, 0))))
        peer.answer(first, b"done")
        await peer.next()

    async def next_one(peer: Peer) -> None:
        await peer.greeted()
        peer.answer(await peer.asked(), b"elsewhere")
        await peer.next()

    async with serving(leaving, next_one) as address:
        channel = GrpcChannel(address)
        one, two = await asyncio.gather(
            *(channel.call("/s/m", b"", 5) for _ in range(2)), return_exceptions=True
        )
        assert one == b"done"
        assert isinstance(two, RpcError)
        assert two.unsent
        assert await channel.call("/s/m", b"", 5) == b"elsewhere"
        await channel.close()


async def test_a_queued_call_that_times_out_was_not_sent() -> None:
    async def one_at_a_time(peer: Peer) -> None:
        await peer.greeted({frames.MAX_STREAMS: 1})
        first = await peer.asked()
        assert (await peer.until(frames.RST_STREAM)).stream == first
        peer.answer(await peer.asked(), b"third")
        await peer.next()

    async with serving(one_at_a_time) as address:
        channel = GrpcChannel(address)
        first = asyncio.ensure_future(channel.call("/s/m", b"", 0.4))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(channel.call("/s/m", b"", 0.2))
        third = asyncio.ensure_future(channel.call("/s/m", b"", 5))
        assert await third == b"third"
        failures = [first.exception(), second.exception()]
        assert [getattr(failure, "unsent", None) for failure in failures] == [False, True]
        await channel.close()


async def test_a_call_that_had_not_left_when_the_connection_broke_was_not_sent() -> None:
    async def plain(peer: Peer) -> None:
        await peer.greeted()
        while True:
            peer.answer(await peer.asked(), b"well")

    async with serving(plain) as address:
        channel = GrpcChannel(address)
        assert await channel.call("/s/m", b"", 5) == b"well"
        connection = channel._connection
        assert connection is not None
        call = channel.call("/s/m", b"", 5)
        call.send(None)  # as far as it gets in one step: into what the turn's end sends
        connection.connection_lost(ConnectionResetError())
        with pytest.raises(RpcError) as caught:
            call.send(None)
        assert caught.value.unsent
        connection._transport.abort()


# -- nobody knows


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (head(1),),
        (head(1), data(1, message(b"whole"))),
        (head(1), data(1, message(b"whole")[:-2])),
        (head(1) + data(1, message(b"whole"))[:-3],),
        (answer(1, b"x")[:-4],),
        (frames.reset(1, frames.CANCEL),),
        (frames.reset(1, 2),),
        (b"\xff" * 40,),
    ],
)
async def test_a_server_that_stops_in_the_middle_may_have_carried_it_out(
    parts: tuple[bytes, ...],
) -> None:
    assert not (await failure_of(saying(*parts))).unsent


@pytest.mark.parametrize(
    "parts",
    [
        (head(1), data(1, message(b"half")[:-1]), trailers(1)),
        (head(1), data(1, b"\0\xff\xff\xff\xffx"), trailers(1)),
        (head(1), data(1, b"\1" + message(b"packed")[1:]), trailers(1)),
        (head(1), trailers(1)),
        (head(1), data(1, message(b"1") + message(b"2")), trailers(1)),
        (head(1), data(1, message(b"x")), trailers(1, literal("other", "1"))),
        (head(1), data(1, message(b"x")), trailers(1, literal("grpc-status", "x"))),
        (head(1), data(1, message(b"x"), frames.END_STREAM)),
        (head(1), head(1), data(1, message(b"x")), trailers(1)),
        (data(1, message(b"x")), trailers(1)),
        (trailers(1, b"\x88" + literal("content-type", "text/html")),),
    ],
)
async def test_an_invalid_response_is_an_error(parts: tuple[bytes, ...]) -> None:
    failure = await failure_of(saying(*parts))
    assert failure.code in (GrpcCode.INTERNAL, GrpcCode.UNKNOWN)
    assert not failure.unsent


@pytest.mark.parametrize(
    "lie",
    [
        frames.HEAD.pack(0xFF, 0xFFFF, frames.DATA, 0, 1),  # longer than any frame may be
        data(3, message(b"x")),  # a call nobody made
        data(2, message(b"x")),
        frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, HEAD),
        frames.frame(frames.HEADERS, 0, 1, HEAD) + data(1, message(b"x")),
        frames.frame(frames.HEADERS, 0, 1, HEAD)
        + frames.frame(frames.CONTINUATION, 0, 1, b"\0" * 16000) * 2,
        frames.frame(frames.HEADERS, frames.END_HEADERS | frames.PADDED, 1, b"\xff\x88"),
        frames.frame(frames.HEADERS, frames.END_HEADERS, 1, b"\xbe"),
        frames.frame(frames.PUSH_PROMISE, frames.END_HEADERS, 1, bytes(4) + HEAD),
        frames.frame(frames.SETTINGS, 0, 0, b"\0\1\0"),
        frames.settings({frames.INITIAL_WINDOW: 2**31}),
        frames.window_update(0, 0),
        frames.window_update(0, 2**31 - 1) * 2,
        frames.window_update(1, 2**31 - 1) * 2,
        frames.frame(frames.RST_STREAM, 0, 1, b"\0"),
        frames.frame(frames.GOAWAY, 0, 0, b"\0"),
    ],
)
async def test_a_server_that_breaks_the_protocol_is_left_and_a_new_connection_works(
    lie: bytes,
) -> None:
    async def lying(peer: Peer) -> None:
        await peer.greeted()
        await peer.asked()
        peer.send(lie)
        assert (await peer.until(frames.GOAWAY)).payload[4:] != bytes(4)
        await peer.next()
        raise AssertionError("the connection stands")

    async def honest(peer: Peer) -> None:
        await peer.greeted()
        peer.answer(await peer.asked(), b"yes")
        await peer.next()

    async with serving(lying, honest) as address:
        channel = GrpcChannel(address)
        with pytest.raises(RpcError) as caught:
            await channel.call("/s/m", b"", 5)
        assert not caught.value.unsent
        assert await channel.call("/s/m", b"", 5) == b"yes"
        await channel.close()


async def test_a_late_answer_is_reset_and_other_calls_continue() -> None:
    async def slow(peer: Peer) -> None:
        await peer.greeted()
        asked = {await peer.asked(), await peer.asked()}
        given_up = (await peer.until(frames.RST_STREAM)).stream
        peer.answer(given_up, b"too late")
        peer.answer((asked - {given_up}).pop(), b"in time")
        await peer.next()

    async with serving(slow) as address:
        channel = GrpcChannel(address)
        patient = asyncio.ensure_future(channel.call("/s/m", b"", 5))
        hasty = asyncio.ensure_future(channel.call("/s/m", b"", 0.1))
        assert await patient == b"in time"
        failure = hasty.exception()
        assert isinstance(failure, RpcError)
        assert failure.code is GrpcCode.DEADLINE_EXCEEDED
        assert not failure.unsent
        await channel.close()


async def test_a_caller_that_gives_up_takes_the_call_back() -> None:
    taken_back = asyncio.Event()

    async def hanging(peer: Peer) -> None:
        await peer.greeted()
        asked = await peer.asked()
        call.cancel()
        assert (await peer.until(frames.RST_STREAM)).stream == asked
        taken_back.set()

    async with serving(hanging) as address:
        channel = GrpcChannel(address)
        call = asyncio.ensure_future(channel.call("/s/m", b"", 5))
        with pytest.raises(asyncio.CancelledError):
            await call
        await taken_back.wait()
        await channel.close()


async def test_a_silent_server_is_pinged_and_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_PING_AFTER", 0.05)
    monkeypatch.setattr(connections, "_PING_PATIENCE", 0.2)

    async def alive_for_a_while(peer: Peer) -> None:
        await peer.greeted()
        await peer.asked()
        for _ in range(3):
            ping = await peer.until(frames.PING)
            peer.send(frames.frame(frames.PING, frames.ACK, 0, ping.payload))
        await peer.until(frames.PING)
        await peer.next()

    failure = await failure_of(alive_for_a_while, patience=30)
    assert failure.code is GrpcCode.UNAVAILABLE  # the ping failed before the call's own deadline
    assert not failure.unsent


async def test_an_error_page_of_a_proxy_is_not_a_grpc_response() -> None:
    page = literal(":status", "503") + literal("content-type", "text/html")
    parts = frames.frame(frames.HEADERS, frames.END_HEADERS, 1, page), data(1, b"<html>", 1)
    failure = await failure_of(saying(*parts))
    assert (failure.code, failure.unsent) == (GrpcCode.UNAVAILABLE, False)


async def test_a_message_that_one_caller_cannot_decode_ends_its_stream_alone() -> None:
    async def talking(peer: Peer) -> None:
        await peer.greeted()
        chat = (await peer.until(frames.DATA)).stream
        peer.send(head(chat) + data(chat, message(b"nonsense")))
        assert (await peer.until(frames.RST_STREAM)).stream == chat
        peer.answer(await peer.asked(), b"well")
        await peer.next()

    def read(content: bytes) -> None:
        raise ValueError(content)

    async with serving(talking) as address:
        channel, ended = GrpcChannel(address), asyncio.get_running_loop().create_future()
        await channel.converse("/s/chat", b"", read, ended.set_result, 5)
        assert "nonsense" in str(await ended)
        assert await channel.call("/s/m", b"", 5) == b"well"
        await channel.close()
