"""Many clients and a slow webhook: few reviews, none wrong; a hanging one holds nothing up."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import pytest

from instar.kube.api.crd import WebhookClient
from instar.wire.webhooks.call_limits import CallerLimit
from tests.support.server import Answer, LiveServer, live_server
from tests.support.waiting import eventually
from tests.support.webhook import Webhook
from tests.webhooks.support import Watching, Widgets, metrics

READERS, OBJECTS = 200, 500


async def _create_many(widgets: Widgets, count: int) -> None:
    async with _session(widgets.server, connections=8) as session:

        async def create(number: int) -> None:
            body = widgets.widget("v1", f"w{number:03}", port=number)
            url = widgets.server.url + widgets.path("v1")
            async with session.post(url, json=body) as response:
                assert response.status == 201

        await asyncio.gather(*(create(number) for number in range(count)))


def _session(server: LiveServer, connections: int = 0) -> aiohttp.ClientSession:
    tls = ssl.create_default_context(cadata=server.running.ca.decode())
    connector = aiohttp.TCPConnector(ssl=tls, limit=connections)
    headers = {"Authorization": f"Bearer {server.token}"}
    return aiohttp.ClientSession(connector=connector, headers=headers)


async def _gather(
    server: LiveServer, paths: list[str], noted: Callable[[int], None] = lambda status: None
) -> list[tuple[int, bytes]]:
    async with _session(server) as session:

        async def get(path: str) -> tuple[int, bytes]:
            async with session.get(server.url + path) as response:
                noted(response.status)
                return response.status, await response.read()

        return await asyncio.gather(*(get(path) for path in paths))


def test_two_hundred_readers_of_five_hundred_objects_share_a_few_reviews(
    widgets: Widgets, hook: Webhook
) -> None:
    asyncio.run(_create_many(widgets, OBJECTS))
    hook.pause()
    threading.Timer(0.5, hook.resume).start()
    lists = [widgets.path("v2")] * (READERS // 2)
    gets = [widgets.path("v2", f"w{number:03}") for number in range(READERS // 2)]

    answers = asyncio.run(_gather(widgets.server, [*lists, *gets]))

    assert {status for status, _ in answers} == {200}
    # Their resourceVersion may differ: the server writes, too.
    items, *others = (json.loads(body)["items"] for _, body in answers[: len(lists)])
    assert all(other == items for other in others)
    expected = [f"h:{number}" for number in range(OBJECTS)]
    assert [item["spec"]["hostPort"] for item in items] == expected
    for number, (_, body) in enumerate(answers[len(lists) :]):
        assert json.loads(body) == items[number]
    assert hook.reviews <= 1 + len(gets)
    assert hook.objects == OBJECTS


def test_readers_of_the_same_list_wait_for_one_review(widgets: Widgets, hook: Webhook) -> None:
    for name in "abc":
        widgets.create("v1", name)
    hook.pause()
    threading.Timer(0.3, hook.resume).start()

    answers = asyncio.run(_gather(widgets.server, [widgets.path("v2")] * READERS))

    assert {status for status, _ in answers} == {200}
    assert len({body for _, body in answers}) == 1
    assert hook.reviews == 1


@pytest.fixture(scope="module")
def narrow_server() -> Iterator[LiveServer]:
    with live_server(webhook_calls=2, webhook_queue=3) as running:
        yield running


def test_calls_beyond_the_limit_of_a_hanging_webhook_are_rejected(
    narrow_server: LiveServer, hook: Webhook
) -> None:
    widgets = Widgets(narrow_server, hook.conversion())
    for number in range(20):
        widgets.create("v1", f"w{number}")
    hook.pause()
    paths = [widgets.path("v2", f"w{number}") for number in range(20)]
    statuses: list[int] = []

    def noted(status: int) -> None:
        statuses.append(status)
        if len(statuses) == 15:
            hook.resume()

    asyncio.run(_gather(narrow_server, paths, noted))

    assert sorted(statuses) == [200] * 5 + [429] * 15
    rejected = f'instar_conversion_rejected_total{{webhook="{hook.url}",crd="{widgets.name}"}}'
    assert metrics(narrow_server)[rejected] == 15
    assert widgets.get("v1").status == 200


def test_a_refused_request_has_a_retry_after(narrow_server: LiveServer, hook: Webhook) -> None:
    widgets = Widgets(narrow_server, hook.conversion())
    for number in range(6):
        widgets.create("v1", f"w{number}")
    hook.pause()
    with ThreadPoolExecutor(5) as pool:
        waiting = [pool.submit(widgets.get, "v2", f"w{number}") for number in range(5)]
        hook.wait_for_calls(1)
        answer = _until_refused(widgets, hook)
        hook.resume()

    assert (answer.status, answer.json["reason"]) == (429, "TooManyRequests")
    assert answer.header("Retry-After") == "1"
    assert hook.url in answer.json["message"]
    assert {future.result().status for future in waiting} == {200}


def _until_refused(widgets: Widgets, hook: Webhook) -> Answer:
    """The waiting ones arrive on connections of their own, in their own time."""
    eventually(lambda: _crowd(widgets, hook).inside == 5)
    return widgets.get("v2", "w5")


def _crowd(widgets: Widgets, hook: Webhook) -> CallerLimit:
    client = WebhookClient(url=hook.url, service=None, ca_bundle=hook.ca_bundle)
    pool = widgets.server.running.machinery.conversion.transports
    return pool.transport_for(client).crowd


def test_a_client_that_leaves_takes_its_call_along(widgets: Widgets, hook: Webhook) -> None:
    widgets.create("v1", "a")
    hook.pause()
    connection = widgets.server.connection()
    headers = {"Authorization": f"Bearer {widgets.server.token}"}
    connection.request("GET", widgets.path("v2", "a"), headers=headers)
    hook.wait_for_calls(1)

    connection.close()
    eventually(lambda: _crowd(widgets, hook).inside == 0)
    hook.resume()

    assert widgets.get("v2", "a").status == 200
    assert hook.reviews == 2


def test_a_client_that_disconnects_does_not_cancel_shared_conversions(
    widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v1", "a")
    hook.pause()
    connection = widgets.server.connection()
    headers = {"Authorization": f"Bearer {widgets.server.token}"}
    connection.request("GET", widgets.path("v2", "a"), headers=headers)
    hook.wait_for_calls(1)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(widgets.get, "v2", "a")
        _wait_for_shared(widgets)
        connection.close()
        hook.resume()
        answer = other.result()

    assert answer.status == 200
    assert hook.reviews == 1


def _wait_for_shared(widgets: Widgets) -> None:
    counter = f'instar_conversion_cache_total{{crd="{widgets.name}",outcome="shared"}} 1'
    eventually(lambda: counter in widgets.server.request("GET", "/metrics").text)


def test_a_backlog_of_events_is_converted_together(widgets: Widgets, hook: Webhook) -> None:
    watch = Watching(widgets.server, widgets.path("v2"))
    hook.pause()

    widgets.create("v1", "a", port=1)
    hook.wait_for_calls(1)
    for port in range(2, 12):
        widgets.patch("v1", "a", {"spec": {"port": port}})
    hook.resume()

    events = watch.wait_for(lambda lines: len(lines) == 11)
    watch.close()
    assert [event["object"]["spec"]["hostPort"] for event in events] == [
        f"h:{port}" for port in range(1, 12)
    ]
    assert hook.reviews == 2
