"""A cluster that is none of ours: what its public API tells is shown, the rest is said to be
unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from instar.kube.access.attributes import User
from instar.server.http.handler_types import Handler, Secret
from instar.server.http.messages import Request, Response
from instar.server.registry.resources.context import utc_now
from instar.server.rest.error_responses import page_not_found
from instar.tools.console.views.convert import convert
from instar.tools.console.views.objects import object_everywhere
from instar.tools.console.views.overview import overview
from instar.tools.console.views.summaries import Summaries
from instar.tools.console.views.versions import versions
from instar.tools.console.views.webhooks import webhooks
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access
from instar.wire.conversion.factory import ConversionServices
from tests.console.worlds import renaming, store, widget, widgets
from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook

GROUP = "other.example.com"


def without_ours(api: Handler, secret: Secret) -> Handler:
    async def answer(request: Request, peer: User | None) -> Response:
        if request.path.startswith("/instar/"):
            return page_not_found()
        return await api(request, peer)

    return answer


@pytest.fixture(scope="module")
def other() -> Iterator[LiveServer]:
    with Webhook(renaming) as hook, live_server(front=without_ours) as server:
        server.create_crd(widgets(GROUP, conversion=hook.conversion()))
        store(server, widget(GROUP, "a", width=3))
        yield server


def asked(server: LiveServer, work: Callable[[Client], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        async with Client(load_access(server.kubeconfig)) as client:
            return await work(client)

    return asyncio.run(scenario())


def test_home_says_what_it_does_not_know(other: LiveServer) -> None:
    found = asked(other, lambda client: overview(client, Summaries()))

    [crd] = found["crds"]
    assert {line["what"] for line in found["unknown"]} == {"census", "usage", "webhooks"}
    assert (found["exact"], crd["total"], crd["conversion"]["failures"]) == (False, 1, None)
    assert [item["stored"] for item in crd["versions"]] == [None, None]
    assert [item["storedAtMost"] for item in crd["versions"]] == [0, 1]
    assert [line["why"][-1] for line in found["unknown"]] == [".", ".", "."]
    assert [item["name"] for item in crd["versions"]] == ["v1beta1", "v1"]


def test_stored_versions_are_estimated_and_usage_is_not_made_up(other: LiveServer) -> None:
    found = asked(other, lambda client: versions(client, f"widgets.{GROUP}"))

    assert found["census"]["exact"] is False
    assert found["usageSince"] is None
    unserve = next(step for step in found["versions"][0]["next"] if step["step"] == "unserve")
    assert "no requests are counted here" in unserve["blockedBy"][0]


def test_an_object_is_shown_at_every_version_without_the_stored_one(other: LiveServer) -> None:
    found = asked(
        other, lambda client: object_everywhere(client, f"widgets.{GROUP}", "default", "a")
    )

    old, new = found["versions"]
    assert found["storedVersion"] is None
    assert (old["object"]["spec"], new["object"]["spec"]) == ({"size": 3}, {"width": 3})


def test_a_pasted_object_goes_to_the_webhook_itself(other: LiveServer) -> None:
    async def work(client: Client) -> Any:
        services = ConversionServices(memo=None)
        try:
            shown = {"object": widget(GROUP, "b", at="v1beta1", size=4)}
            return await convert(client, Summaries(), shown, services)
        finally:
            await services.close()

    found = asked(other, work)

    assert found["versions"][1]["object"]["spec"] == {"width": 4}
    assert found["by"].startswith("webhook https://")


def test_webhooks_are_listed_with_their_certificates(other: LiveServer) -> None:
    found = asked(other, lambda client: webhooks(client, Summaries(), utc_now()))

    [mine] = found["webhooks"]
    assert (mine["health"], mine["calls"], mine["latency"]) == ("unknown", None, None)
    assert mine["certificates"][0]["notAfter"]
