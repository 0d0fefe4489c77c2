"""What a connection owes the other side: windows, pings, numbers; and bytes in any pieces."""

from __future__ import annotations

import asyncio

import pytest

from instar.base.http2 import frames
from instar.wire.rpc import connection as connections
from instar.wire.rpc.channel import GrpcChannel
from instar.wire.rpc.headers import literal
from instar.wire.rpc.status import GrpcCode, RpcError
from tests.rpc.raw_server import HEAD, WELL, Peer, answer, data, head, message, serving, trailers

pytestmark = pytest.mark.anyio


async def test_no_more_is_sent_than_the_server_takes() -> None:
    async def narrow(peer: Peer) -> None:
        await peer.greeted({frames.INITIAL_WINDOW: 10})
        first = await peer.until(frames.DATA)
        assert (len(first.payload), first.flags) == (10, 0)
        peer.send(frames.window_update(first.stream, 90))
        assert len((await peer.until(frames.DATA)).payload) == 90
        peer.send(frames.settings({frames.INITIAL_WINDOW: 10 + (1 << 20)}))
        left, size = frames.DEFAULT_WINDOW - 100, 0
        while size < left:
            found = await peer.until(frames.DATA)
            assert len(found.payload) <= frames.MOST_PAYLOAD
            size += len(found.payload)
        assert size == left
        peer.send(frames.window_update(0, 1 << 20))
        while not (found := await peer.until(frames.DATA)).flags & frames.END_STREAM:
            size += len(found.payload)
        peer.answer(first.stream, b"%d" % (100 + size + len(found.payload)))
        await peer.next()

    async with serving(narrow) as address:
        channel = GrpcChannel(address)
        assert await channel.call("/s/m", b"x" * 200_000, 5) == b"200005"
        await channel.close()


async def test_a_server_that_responds_early_is_sent_no_more_data() -> None:
    refusal = literal("grpc-status", "8") + literal("grpc-message", "larger than max")

    async def impatient(peer: Peer) -> None:
        await peer.greeted()
        asked = (await peer.until(frames.DATA)).stream
        peer.send(trailers(asked, HEAD + refusal))
        assert (await peer.until(frames.RST_STREAM)).stream == asked
        peer.send(frames.window_update(0, 1 << 20))
        peer.answer(await peer.asked(), b"small")
        await peer.next()

    async with serving(impatient) as address:
        channel = GrpcChannel(address)
        with pytest.raises(RpcError, match="larger than max") as caught:
            await channel.call("/s/m", b"x" * 500_000, 5)
        assert caught.value.code is GrpcCode.RESOURCE_EXHAUSTED
        assert await channel.call("/s/m", b"", 5) == b"small"
        await channel.close()


async def test_bytes_may_come_in_any_pieces() -> None:
    padded = frames.frame(
        frames.HEADERS,
        frames.END_HEADERS | frames.PADDED | frames.HAS_PRIORITY,
        1,
        b"\2" + bytes(5) + HEAD + b"..",
    )
    whole = (
        frames.frame(frames.HEADERS, frames.END_HEADERS, 1, literal(":status", "103"))
        + padded
        + data(1, b"\3" + message(b"hello world")[:9] + b"...", frames.PADDED)
        + frames.frame(99, 0xFF, 1, b"of a later time")
        + frames.frame(frames.PRIORITY, 0, 1, bytes(5))
        + data(1, message(b"hello world")[9:])
        + frames.frame(frames.HEADERS, frames.END_STREAM, 1, WELL[:7])
        + frames.frame(frames.CONTINUATION, 0, 1, WELL[7:9])
        + frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, WELL[9:])
    )

    async def piecemeal(peer: Peer) -> None:
        await peer.greeted()
        await peer.asked()
        for at in range(len(whole)):
            peer.send(whole[at : at + 1])
            await asyncio.sleep(0)
        await peer.next()

    async with serving(piecemeal) as address:
        channel = GrpcChannel(address)
        assert await channel.call("/s/m", b"", 5) == b"hello world"
        await channel.close()


async def test_a_ping_with_every_call_needs_no_additional_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_PONG_AFTER", 3600)
    most, said = 3, list[int]()
    monkeypatch.setattr(connections, "_MOST_PINGS", most)

    async def measuring(peer: Peer) -> None:
        await peer.greeted()
        for _ in range(most + 2):
            asked = await peer.until(frames.HEADERS, frames.PING)
            said.append(asked.kind)
            if asked.kind == frames.HEADERS:
                peer.send(frames.frame(frames.PING, 0, 0, b"%08d" % asked.stream))
                peer.answer(asked.stream, b"")
        said.extend([(await peer.until(frames.PING)).flags for _ in range(most)])
        peer.answer(await peer.asked(), b"all answered")
        await peer.next()

    async with serving(measuring) as address:
        channel = GrpcChannel(address)
        for _ in range(most + 1):
            await channel.call("/s/m", b"", 5)
        assert await channel.call("/s/m", b"", 5) == b"all answered"
        await channel.close()
    assert said == [*[frames.HEADERS] * (most + 1), frames.PING, *[frames.ACK] * most]


async def test_a_ping_is_answered_and_settings_are_confirmed() -> None:
    async def curious(peer: Peer) -> None:
        await peer.greeted()
        asked = await peer.asked()
        peer.send(frames.frame(frames.PING, 0, 0, b"12345678"))
        pong = await peer.until(frames.PING)
        assert (pong.flags, pong.payload) == (frames.ACK, b"12345678")
        peer.send(frames.settings({}))
        confirmed = await peer.until(frames.SETTINGS)
        assert (confirmed.flags, confirmed.payload) == (frames.ACK, b"")
        peer.answer(asked, b"well")
        await peer.next()

    async with serving(curious) as address:
        channel = GrpcChannel(address)
        assert await channel.call("/s/m", b"", 5) == b"well"
        await channel.close()


async def test_the_server_may_continue_after_a_full_window() -> None:
    size = 9 << 20

    async def talkative(peer: Peer) -> None:
        await peer.greeted()
        asked = await peer.asked()
        peer.send(head(asked))
        content, at, window = message(b"x" * size), 0, 4 << 20
        while at < len(content):
            while window < frames.MOST_PAYLOAD:
                grown = await peer.until(frames.WINDOW)
                if grown.stream == asked:
                    window += frames.read_number(grown.payload)
            peer.send(data(asked, content[at : at + frames.MOST_PAYLOAD]))
            at, window = at + frames.MOST_PAYLOAD, window - frames.MOST_PAYLOAD
        peer.send(trailers(asked))
        await peer.next()

    async with serving(talkative) as address:
        channel = GrpcChannel(address)
        assert len(await channel.call("/s/m", b"", 20)) == size
        await channel.close()


async def test_a_connection_whose_numbers_are_used_up_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_LAST_NUMBER", 5)
    made: list[int] = []

    async def plain(peer: Peer) -> None:
        made.append(0)
        await peer.greeted()
        while True:
            made[-1] += 1
            peer.send(answer(await peer.asked(), b"well"))

    async with serving(plain) as address:
        channel = GrpcChannel(address)
        for _ in range(7):
            assert await channel.call("/s/m", b"", 5) == b"well"
        await channel.close()
    assert len(made) == 3


async def test_calls_beyond_what_the_server_takes_at_once_wait_their_turn() -> None:
    async def two_at_a_time(peer: Peer) -> None:
        await peer.greeted({frames.MAX_STREAMS: 2})
        under_way: list[int] = []
        for _ in range(10):
            under_way.append(await peer.asked())
            assert len(under_way) <= 2
            if len(under_way) == 2:
                peer.answer(under_way.pop(0), b"well")
        peer.answer(under_way.pop(0), b"well")
        await peer.next()

    async with serving(two_at_a_time) as address:
        channel = GrpcChannel(address)
        answers = await asyncio.gather(*(channel.call("/s/m", b"", 5) for _ in range(10)))
        assert answers == [b"well"] * 10
        await channel.close()


async def test_a_closed_channel_ends_running_calls_and_refuses_new_ones() -> None:
    async def hanging(peer: Peer) -> None:
        await peer.greeted()
        await peer.asked()
        asked.set()
        await peer.next()

    asked = asyncio.Event()
    async with serving(hanging) as address:
        channel = GrpcChannel(address)
        call = asyncio.ensure_future(channel.call("/s/m", b"", 30))
        await asked.wait()
        await channel.close()
        with pytest.raises(RpcError) as caught:
            await call
        assert not caught.value.unsent
        with pytest.raises(RpcError) as caught:
            await channel.call("/s/m", b"", 5)
        assert caught.value.unsent
