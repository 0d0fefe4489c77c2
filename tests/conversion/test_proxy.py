"""A webhook behind a proxy: the tunnel, and who is blamed when there is none."""

from __future__ import annotations

import asyncio
import base64

import pytest

from instar.wire.webhooks.failure import CallFailed
from tests.conversion.scripted import Behaviour, Caller, Run, Server, answer_all, client, served
from tests.conversion.test_transport import closed_port

BODY = b"{}"
GRANTED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def tunnel_to(target: Server, heads: list[bytes], granted: bytes = GRANTED) -> Behaviour:
    async def behaviour(caller: Caller) -> None:
        heads.append(await caller.head())
        caller.send(granted)
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        there = asyncio.create_task(_carry(caller.reader, writer))
        await _carry(reader, caller.writer)
        await there

    return behaviour


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            target.write(data)
    except OSError:
        """It ends either way."""
    finally:
        target.transport.abort()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_webhook_is_reached_through_a_tunnel_which_is_kept(run: Run, scheme: str) -> None:
    async def scenario() -> None:
        heads: list[bytes] = []
        async with (
            served(answer_all) as hook,
            served(tunnel_to(hook, heads), tls=scheme == "https") as proxy,
            client(f"{scheme}://127.0.0.1:{proxy.port}") as caller,
        ):
            for _ in range(3):
                await caller.post(f"https://localhost:{hook.port}/convert", BODY)

            target = b"localhost:%d" % hook.port
            assert heads == [b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, target)]
            assert hook.requests == 3

    run(scenario())


def test_proxy_credentials_are_sent_to_the_proxy_only(run: Run) -> None:
    async def scenario() -> None:
        heads: list[bytes] = []
        async with (
            served(answer_all) as hook,
            served(tunnel_to(hook, heads), tls=False) as proxy,
            client(f"http://us%40er:pa%3Ass@127.0.0.1:{proxy.port}") as caller,
        ):
            await caller.post(hook.url, BODY)

            credentials = base64.b64encode(b"us@er:pa:ss")
            assert heads[0].endswith(b"\r\nProxy-Authorization: Basic %b\r\n\r\n" % credentials)
            assert b"Proxy-Authorization" not in hook.callers[0].requests[0]

    run(scenario())


@pytest.mark.parametrize(
    "granted",
    [
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ],
)
def test_a_tunnel_begins_after_the_head(run: Run, granted: bytes) -> None:
    async def scenario() -> None:
        async with (
            served(answer_all) as hook,
            served(tunnel_to(hook, [], granted), tls=False) as proxy,
            client(f"127.0.0.1:{proxy.port}") as caller,
        ):
            assert (await caller.post(hook.url, BODY)).status == 200

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "Proxy Authentication Required"),
        (b"HTTP/1.1 403\r\nContent-Length: 2\r\n\r\nno", "unknown status code"),
        (
            b"220 smtp ready\r\n\r\n",
            "net/http: HTTP/1.x transport connection broken: malformed HTTP response",
        ),
        (b"", "EOF"),
        (GRANTED, "EOF"),
    ],
)
def test_without_a_proxy_tunnel_the_webhook_is_not_called(
    run: Run, answer: bytes, problem: str
) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.head()
        caller.send(answer)
        await caller.writer.drain()
        caller.writer.close()

    async def scenario() -> None:
        async with (
            served(behaviour, tls=False) as proxy,
            client(f"http://127.0.0.1:{proxy.port}") as caller,
        ):
            with pytest.raises(CallFailed) as caught:
                await caller.post("https://hook.invalid/convert", BODY)

        assert caught.value.text == f'Post "https://hook.invalid/convert": {problem}'

    run(scenario())


def test_a_refusal_names_the_proxy(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.head()
        caller.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        await caller.left()

    async def scenario() -> None:
        async with (
            served(behaviour, tls=False) as proxy,
            client(f"http://127.0.0.1:{proxy.port}") as caller,
        ):
            with pytest.raises(CallFailed) as caught:
                await caller.post("https://hook.invalid/convert", BODY)

        assert caught.value.advice == (
            f"the proxy 127.0.0.1:{proxy.port} answered HTTP 403 when asked to connect to "
            "hook.invalid:443"
        )

    run(scenario())


def test_the_certificate_behind_a_tunnel_must_carry_the_webhooks_name(run: Run) -> None:
    async def scenario() -> None:
        async with (
            served(answer_all) as hook,
            served(tunnel_to(hook, []), tls=False) as proxy,
            client(f"http://127.0.0.1:{proxy.port}") as caller,
        ):
            with pytest.raises(CallFailed, match=r"x509: .* not hook\.invalid$"):
                await caller.post("https://hook.invalid/convert", BODY)

    run(scenario())


def test_a_call_given_up_takes_its_tunnel_along(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.head()
        caller.send(GRANTED)
        await caller.reader.read(1)
        arrived.set()
        await caller.left()
        dropped.set()

    async def scenario() -> None:
        async with (
            served(behaviour, tls=False) as proxy,
            client(f"http://127.0.0.1:{proxy.port}") as caller,
        ):
            call = asyncio.create_task(caller.post("https://hook.invalid/convert", BODY))
            await arrived.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await dropped.wait()

    arrived, dropped = asyncio.Event(), asyncio.Event()
    run(scenario())


@pytest.mark.parametrize(
    ("proxy", "problem"),
    [
        ("http://proxy.invalid", "dial tcp: lookup proxy.invalid: no such host"),
        ("http://u:secret@proxy:99999", 'invalid proxy address "http://proxy:99999"'),
        ("socks5://proxy:1080", 'invalid proxy address "socks5://proxy:1080"'),
        ("http://", 'invalid proxy address "http://"'),
    ],
)
def test_an_unreachable_proxy_is_reported_as_a_proxy_error(
    run: Run, proxy: str, problem: str
) -> None:
    async def scenario() -> None:
        async with client(proxy) as caller:
            with pytest.raises(CallFailed) as caught:
                await caller.post("https://hook.invalid/", BODY)

        assert caught.value.text == f'Post "https://hook.invalid/": proxyconnect tcp: {problem}'

    run(scenario())


def test_a_proxy_without_tls_is_reported_as_a_proxy_error(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        caller.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await caller.left()

    async def scenario() -> None:
        async with (
            served(behaviour, tls=False) as proxy,
            client(f"https://127.0.0.1:{proxy.port}") as caller,
        ):
            with pytest.raises(CallFailed, match="proxyconnect tcp: http: server gave HTTP resp"):
                await caller.post("https://hook.invalid/", BODY)

    run(scenario())


def test_a_proxy_that_is_down_is_reported_with_its_address(run: Run) -> None:
    port = closed_port()

    async def scenario() -> None:
        async with client(f"http://localhost:{port}") as caller:
            with pytest.raises(CallFailed, match=rf"proxyconnect tcp: dial tcp .*:{port}: connect"):
                await caller.post("https://hook.invalid/", BODY)

    run(scenario())
