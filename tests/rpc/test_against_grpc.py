"""Our calls as another implementation's server sees and answers them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from instar.wire.rpc.channel import GrpcChannel, Messages
from instar.wire.rpc.status import GrpcCode, RpcError

pytestmark = pytest.mark.anyio

LARGE = 20 << 20
Context = grpc.aio.ServicerContext[bytes, bytes]


class Handlers(grpc.GenericRpcHandler):
    def service(
        self, details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        match details.method:
            case "/test/echo":
                return grpc.unary_unary_rpc_method_handler(self._echo)
            case "/test/large":
                return grpc.unary_unary_rpc_method_handler(self._large)
            case "/test/refuse":
                return grpc.unary_unary_rpc_method_handler(self._refuse)
            case "/test/chat":
                return grpc.stream_stream_rpc_method_handler(self._chat)
        return None

    async def _echo(self, request: bytes, context: Context) -> bytes:
        told = dict(context.invocation_metadata() or ())
        assert 0 < context.time_remaining() < 6
        return request + str(told.get("token", "")).encode()

    async def _large(self, request: bytes, context: Context) -> bytes:
        return b"x" * int(request)

    async def _refuse(self, request: bytes, context: Context) -> bytes:
        await context.abort(grpc.StatusCode.OUT_OF_RANGE, "später: 100 % <gone>")
        raise AssertionError

    async def _chat(self, requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request.upper()
            if request == b"bye":
                return


@pytest.fixture(params=["tcp", "unix"])
async def channel(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[GrpcChannel]:
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(options=unlimited)
    server.add_generic_rpc_handlers((Handlers(),))
    unix = f"unix:{tmp_path}/s"
    port = server.add_insecure_port("127.0.0.1:0" if request.param == "tcp" else unix)
    await server.start()
    channel = GrpcChannel(f"127.0.0.1:{port}" if request.param == "tcp" else unix)
    yield channel
    await channel.close()
    await server.stop(None)


async def test_a_call_is_answered(channel: GrpcChannel) -> None:
    assert await channel.call("/test/echo", b"hi ", 5, (("token", "abc"),)) == b"hi abc"
    assert await channel.call("/test/echo", b"", 5) == b""


async def test_many_calls_share_the_connection(channel: GrpcChannel) -> None:
    asked = [b"%d" % number for number in range(300)]
    answers = await asyncio.gather(*(channel.call("/test/echo", each, 5) for each in asked))
    assert answers == asked


async def test_messages_larger_than_every_window_go_both_ways(channel: GrpcChannel) -> None:
    assert len(await channel.call("/test/large", b"%d" % LARGE, 5.5)) == LARGE
    assert len(await channel.call("/test/echo", b"y" * LARGE, 5.5)) == LARGE


async def test_a_refusal_tells_its_code_and_its_words(channel: GrpcChannel) -> None:
    with pytest.raises(RpcError) as caught:
        await channel.call("/test/refuse", b"", 5)
    assert (caught.value.code, caught.value.text) == (GrpcCode.OUT_OF_RANGE, "später: 100 % <gone>")
    assert not caught.value.unsent


async def test_an_unknown_method_is_unimplemented(channel: GrpcChannel) -> None:
    with pytest.raises(RpcError) as caught:
        await channel.call("/test/none", b"", 5)
    assert caught.value.code is GrpcCode.UNIMPLEMENTED


async def test_a_stream_continues_until_one_side_ends_it(channel: GrpcChannel) -> None:
    messages = Messages()
    chat = await channel.converse("/test/chat", b"a", messages.on_message, messages.on_end, 5)
    assert await messages.read() == b"A"
    for word in (b"b" * 100_000, b"bye"):
        chat.send(word)
        assert await messages.read() == word.upper()
    assert await messages.read() is None


async def test_a_cancelled_stream_is_reset_once(channel: GrpcChannel) -> None:
    ends: list[RpcError | None] = []
    chat = await channel.converse("/test/chat", b"a", lambda message: None, ends.append, 5)
    chat.cancel()
    chat.cancel()
    assert [end.code for end in ends if end] == [GrpcCode.CANCELLED]
    assert await channel.call("/test/echo", b"on", 5) == b"on"
