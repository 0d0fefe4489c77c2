"""Which address a webhook is dialled at, and what is said when it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from instar.wire.webhooks import dialer
from instar.wire.webhooks.failure import CallFailed
from tests.conversion.scripted import Run, answer_all, client, served
from tests.conversion.test_transport import closed_port

BODY = b"{}"


def _addresses_at(*ports: int) -> Callable[..., Coroutine[Any, Any, list[dialer.AddressInfo]]]:
    async def addresses(target: object) -> list[dialer.AddressInfo]:
        return [(2, 1, 6, "", ("127.0.0.1", port)) for port in ports]

    return addresses


def test_the_next_address_is_tried_when_one_refuses(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with served(answer_all) as server, client() as hook:
            ports = [closed_port(), server.port]
            monkeypatch.setattr(dialer, "_addresses", _addresses_at(*ports))

            assert (await hook.post("https://localhost/", BODY)).body == b"{}"

    run(scenario())


def test_the_next_address_is_tried_when_one_is_silent(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = dialer._connect

    async def slow(info: dialer.AddressInfo) -> dialer.Dialled:
        if info[4][1] == 1:
            await asyncio.Event().wait()
        return await connect(info)

    async def scenario() -> None:
        async with served(answer_all) as server, client() as hook:
            monkeypatch.setattr(dialer, "_connect", slow)
            monkeypatch.setattr(dialer, "_addresses", _addresses_at(1, server.port))

            assert (await hook.post("https://localhost/", BODY)).body == b"{}"

    run(scenario())


def test_if_every_address_refuses_the_first_error_is_reported(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = closed_port(), closed_port()
    monkeypatch.setattr(dialer, "_addresses", _addresses_at(*ports))

    async def scenario() -> None:
        async with client() as hook:
            with pytest.raises(CallFailed, match=f"dial tcp 127.0.0.1:{ports[0]}: connect: conn"):
                await hook.post("https://localhost/", BODY)

    run(scenario())


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("h.invalid:99999", "dial tcp: address 99999: invalid port"),
        (f"h.invalid:{'9' * 5000}", "dial tcp: address -1: invalid port"),
        (f"{'h' * 70}.invalid", f"dial tcp: lookup {'h' * 70}.invalid: no such host"),
        ("ü..invalid", r"dial tcp: lookup ü..invalid: no such host"),
    ],
)
def test_an_impossible_address_fails_the_call_only(run: Run, address: str, problem: str) -> None:
    async def scenario() -> None:
        async with client() as hook:
            with pytest.raises(CallFailed) as caught:
                await hook.post(f"https://{address}/", BODY)

        assert caught.value.text == f'Post "https://{address}/": {problem}'

    run(scenario())
