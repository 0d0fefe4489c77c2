"""Connections to a webhook: kept, found dead, given up, closed; on both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from instar.base.eager_tasks import start
from instar.wire.webhooks import https
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.http_status import HttpReply
from tests.conversion.scripted import OK, Caller, Run, answer_all, client, served

Farewell = Callable[[Caller], None]
FAREWELLS = [Caller.hang_up, Caller.reset]
BODY = b'{"kind":"ConversionReview"}'


def test_a_request_says_what_kube_apiserver_says(run: Run) -> None:
    async def scenario() -> None:
        async with served(answer_all) as server, client() as hook:
            await hook.post(f"https://localhost:{server.port}/a%2fb/ü c?timeout=30s", BODY)

            assert server.callers[0].requests == [
                b"POST /a%%2fb/%%C3%%BC%%20c?timeout=30s HTTP/1.1\r\n"
                b"Host: localhost:%d\r\n"
                b"User-Agent: kube-apiserver-admission\r\n"
                b"Accept: application/json, */*\r\n"
                b"Content-Type: application/json\r\n"
                b"Accept-Encoding: gzip\r\n"
                b"Content-Length: 27\r\n"
                b"\r\n"
                b'{"kind":"ConversionReview"}' % server.port
            ]

    run(scenario())


def test_a_reply_carries_what_its_reader_needs(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        caller.send(
            b"HTTP/1.1 307 Elsewhere\r\nContent-Type: text/plain\r\nLocation: https://x/\r\n"
            b"Retry-After: 3\r\nContent-Length: 2\r\n\r\nno"
        )
        await caller.left()

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            reply = await hook.post(server.url, BODY)

        assert reply == HttpReply(307, "text/plain", b"no", "3", "https://x/")

    run(scenario())


def test_a_connection_is_used_again(run: Run) -> None:
    async def scenario() -> None:
        async with served(answer_all) as server, client() as hook:
            for _ in range(5):
                await hook.post(server.url, BODY)

            assert len(server.callers) == 1

    run(scenario())


def test_the_most_recently_used_connection_is_used_first(run: Run) -> None:
    async def scenario() -> None:
        async with served(answer_all) as server, client() as hook:
            await asyncio.gather(*(hook.post(server.url, BODY) for _ in range(3)))
            for _ in range(5):
                await hook.post(server.url, BODY)

            assert sorted(len(caller.requests) for caller in server.callers) == [1, 1, 6]

    run(scenario())


def test_an_idle_connection_is_closed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https, "IDLE_SECONDS", 0.01)

    async def behaviour(caller: Caller) -> None:
        await caller.request()
        caller.send(OK)
        await caller.left()
        dropped.set()

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            await hook.post(server.url, BODY)
            await dropped.wait()

    dropped = asyncio.Event()
    run(scenario())


@pytest.mark.parametrize("farewell", FAREWELLS)
def test_a_kept_connection_found_dead_is_replaced(run: Run, farewell: Farewell) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        caller.send(OK)
        await caller.request()
        farewell(caller)

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            for _ in range(3):
                assert (await hook.post(server.url, BODY)).body == b"{}"

            assert [len(caller.requests) for caller in server.callers] == [2, 2, 1]

    run(scenario())


def test_a_call_is_repeated_once_and_over_a_new_connection(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        if len(kept) < 2:
            kept.append(caller)
            caller.send(OK)
            await caller.request()

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            await asyncio.gather(*(hook.post(server.url, BODY) for _ in range(2)))
            with pytest.raises(CallFailed, match=r": EOF$"):
                await hook.post(server.url, BODY)

            assert sorted(len(caller.requests) for caller in server.callers) == [1, 1, 2]

    kept: list[Caller] = []
    run(scenario())


@pytest.mark.parametrize("farewell", FAREWELLS)
def test_a_call_over_a_new_connection_is_not_repeated(run: Run, farewell: Farewell) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        farewell(caller)

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            with pytest.raises(CallFailed, match=r": (EOF|read: connection reset by peer)$"):
                await hook.post(server.url, BODY)

            assert server.requests == 1

    run(scenario())


def test_a_call_whose_answer_had_begun_is_not_repeated(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        caller.send(OK)
        await caller.request()
        caller.send(OK[:10])
        await caller.writer.drain()

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            await hook.post(server.url, BODY)
            with pytest.raises(CallFailed, match=r": EOF$"):
                await hook.post(server.url, BODY)

            assert server.requests == 2

    run(scenario())


def test_unexpected_bytes_close_a_kept_connection(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        caller.send(OK)
        await answered.wait()
        caller.send(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        await caller.left()
        dropped.set()

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            await hook.post(server.url, BODY)
            answered.set()
            await dropped.wait()
            await hook.post(server.url, BODY)

            assert len(server.callers) == 2

    answered, dropped = asyncio.Event(), asyncio.Event()
    run(scenario())


def test_an_answer_may_end_with_the_connection_even_without_goodbye(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        caller.send(b"HTTP/1.1 200 OK\r\n\r\n{}")
        await caller.writer.drain()
        caller.hang_up()

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            for _ in range(2):
                assert (await hook.post(server.url, BODY)).body == b"{}"

            assert len(server.callers) == 2

    run(scenario())


def test_an_answer_may_come_before_the_request_is_through(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.head()
        caller.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            for _ in range(2):
                assert (await hook.post(server.url, bytes(20_000_000))).status == 413

            assert len(server.callers) == 2

    run(scenario())


def test_a_large_answer_is_given_up_while_it_grows(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        caller.send(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(2000))
        await caller.left()
        dropped.set()

    async def scenario() -> None:
        async with served(behaviour) as server, client(most_bytes=1000) as hook:
            with pytest.raises(CallFailed, match="larger than 1000 bytes"):
                await hook.post(server.url, BODY)
            await dropped.wait()

    dropped = asyncio.Event()
    run(scenario())


def test_a_call_given_up_hangs_up_at_once(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        arrived.set()
        await caller.left()
        dropped.set()

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            call = asyncio.create_task(hook.post(server.url, BODY))
            await arrived.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await dropped.wait()

    arrived, dropped = asyncio.Event(), asyncio.Event()
    run(scenario())


def test_a_call_given_up_during_the_handshake_hangs_up_at_once(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.reader.read(1)
        arrived.set()
        await caller.left()
        dropped.set()

    async def scenario() -> None:
        async with served(behaviour, tls=False) as server, client() as hook:
            call = asyncio.create_task(hook.post(server.url, BODY))
            await arrived.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await dropped.wait()

    arrived, dropped = asyncio.Event(), asyncio.Event()
    run(scenario())


def test_closing_ends_all_connections_and_calls(run: Run) -> None:
    async def behaviour(caller: Caller) -> None:
        await caller.request()
        caller.send(OK)
        await caller.request()
        arrived.set()
        await caller.left()

    async def scenario() -> None:
        async with served(behaviour) as server, client() as hook:
            await asyncio.gather(*(hook.post(server.url, BODY) for _ in range(2)))
            call = asyncio.create_task(hook.post(server.url, BODY))
            await arrived.wait()
            await hook.close()
            with pytest.raises(CallFailed, match=r": EOF$"):
                await call

            assert server.requests == 3

    arrived = asyncio.Event()
    run(scenario())


def test_a_call_needs_no_task_of_its_own(run: Run) -> None:
    async def scenario() -> None:
        async with served(answer_all) as server, client() as hook:

            async def call() -> None:
                for _ in range(2):
                    await hook.post(server.url, BODY)
                done.set()

            asyncio.get_running_loop().call_soon(start, call())
            await done.wait()

    done = asyncio.Event()
    run(scenario())
