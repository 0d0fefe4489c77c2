"""Long lists that have to be converted come in parts, made while they are sent."""

from __future__ import annotations

import asyncio
import ssl
import urllib.request
from http.client import IncompleteRead
from typing import Any

import orjson
import pytest

from instar.server.lifecycle.lifetime import RunningServer, running
from instar.server.registry.verbs import read
from instar.server.settings import Settings
from tests.support.inside import CRDS, asked, crd, named

_THINGS = "/apis/example.com/v1/namespaces/default/things"
_OTHER = "/apis/example.com/v2/namespaces/default/things"
_MANY = 25


class Converter:
    """Converts in process, until it has had enough."""

    def __init__(self) -> None:
        self.calls = 0
        self.most = 10_000

    def __call__(self, objects: list[dict[str, Any]], version: str) -> list[dict[str, Any]]:
        self.calls += 1
        if self.calls > self.most:
            raise ValueError("enough")
        return [{**obj, "apiVersion": version, "spec": {"as": version}} for obj in objects]


def converted_crd() -> dict[str, Any]:
    document = crd("things", "Thing", other=True)
    webhook = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]}
    document["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return document


async def fill(server: RunningServer) -> None:
    assert (await asked(server.machinery, "POST", CRDS, converted_crd()))[0] == 201
    for number in range(_MANY):
        body = named("Thing", f"t{number:02d}")
        assert (await asked(server.machinery, "POST", _THINGS, body))[0] == 201


def fetched(server: RunningServer, path: str) -> tuple[bytes, dict[str, str]]:
    trusting = ssl.create_default_context(cadata=server.ca.decode())
    request = urllib.request.Request(
        server.url + path, headers={"Authorization": f"Bearer {server.token}"}
    )
    with urllib.request.urlopen(request, context=trusting, timeout=20) as answer:
        return answer.read(), dict(answer.headers)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_AT_ONCE", 5)
    monkeypatch.setattr(read, "_IN_A_PART", 4)


def test_a_long_converted_list_comes_in_parts_and_whole() -> None:
    async def scenario() -> tuple[bytes, dict[str, str], int]:
        converter = Converter()
        settings = Settings(
            port=0,
            converters={"things.example.com": converter},
            conversion_cache=False,
            convert_ahead=False,
        )
        async with running(settings) as server:
            await fill(server)
            converter.calls = 0
            body, headers = await asyncio.to_thread(fetched, server, _OTHER)
            return body, headers, converter.calls

    body, headers, calls = asyncio.run(scenario())

    items = orjson.loads(body)["items"]
    assert [item["metadata"]["name"] for item in items] == [f"t{n:02d}" for n in range(_MANY)]
    assert {item["apiVersion"] for item in items} == {"example.com/v2"}
    assert headers["transfer-encoding"] == "chunked"
    assert calls == 7


def test_a_list_that_cannot_be_converted_is_an_error_or_broken_off() -> None:
    async def scenario() -> None:
        converter = Converter()
        settings = Settings(
            port=0,
            converters={"things.example.com": converter},
            conversion_cache=False,
            convert_ahead=False,
        )
        async with running(settings) as server:
            await fill(server)
            converter.calls, converter.most = 0, 0
            with pytest.raises(urllib.error.HTTPError) as refused:
                await asyncio.to_thread(fetched, server, _OTHER)
            assert refused.value.code == 500
            refused.value.close()
            converter.calls, converter.most = 0, 3
            with pytest.raises((IncompleteRead, ConnectionError)):
                await asyncio.to_thread(fetched, server, _OTHER)
            assert (await asked(server.machinery, "GET", _THINGS))[0] == 200

    asyncio.run(scenario())
