"""The conversion cache has switches, per server and per request, and everything is counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook
from tests.webhooks.conftest import IMPATIENT_GROUPS
from tests.webhooks.support import Watching, Widgets, metrics

BYPASS = {"X-Instar-Conversion-Cache": "bypass"}


@pytest.fixture(scope="module")
def forgetful_server() -> Iterator[LiveServer]:
    with live_server(conversion_cache=False) as running:
        yield running


def test_the_flag_makes_every_read_ask(forgetful_server: LiveServer, hook: Webhook) -> None:
    widgets = Widgets(forgetful_server, hook.conversion())
    widgets.create("v1", "a")

    for _ in range(3):
        assert widgets.get("v2", "a").status == 200

    assert hook.reviews == 3


@pytest.mark.parametrize("name", ["", "a", "a/status", "a/scale", "?labelSelector=x%21=y"])
def test_the_header_makes_one_request_ask_and_leaves_no_trace(
    name: str, widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v1", "a")
    before = widgets.get("v2", name)

    bypassed = widgets.get("v2", name, **BYPASS)
    after = widgets.get("v2", name)

    assert bypassed.json == before.json == after.json
    assert hook.reviews == 2


def test_the_header_shows_a_webhook_that_has_changed_its_mind(
    widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v1", "a")
    first = widgets.get("v2", "a").json["spec"]
    hook.convert = lambda obj, version: {**obj, "apiVersion": version, "spec": {"hostPort": "x:1"}}

    assert widgets.get("v2", "a", **BYPASS).json["spec"] == {"hostPort": "x:1"}
    assert widgets.get("v2", "a").json["spec"] == first


def test_a_write_that_bypasses_the_cache_is_not_remembered(widgets: Widgets, hook: Webhook) -> None:
    body = widgets.widget("v2", "a")

    created = widgets.server.request("POST", widgets.path("v2"), body, headers=BYPASS)
    reviews = hook.reviews

    assert (created.status, reviews) == (201, 2)
    assert widgets.get("v2", "a").json == created.json
    assert hook.reviews == 3


def test_an_unknown_wish_is_refused(widgets: Widgets) -> None:
    answer = widgets.get("v2", **{"X-Instar-Conversion-Cache": "maybe"})

    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert '"bypass"' in answer.json["message"]


def test_a_change_of_the_crd_forgets_every_conversion(widgets: Widgets, hook: Webhook) -> None:
    widgets.create("v1", "a")
    assert widgets.get("v2", "a").status == 200
    hook.convert = lambda obj, version: {**obj, "apiVersion": version, "spec": {"replicas": 3}}

    widgets.change_crd({"names": {**widgets.crd["spec"]["names"], "shortNames": ["wi"]}})

    assert widgets.get("v2", "a").json["spec"] == {"replicas": 3}


def test_a_store_that_was_loaded_anew_is_converted_anew(widgets: Widgets, hook: Webhook) -> None:
    widgets.create("v1", "a")
    assert widgets.get("v2", "a").status == 200
    resource = widgets.server.running.machinery.catalog.custom(widgets.name)
    assert resource is not None

    widgets.server.loop.call_soon_threadsafe(resource.reset)

    assert widgets.get("v2", "a").status == 200
    assert hook.reviews == 2


def test_a_change_of_the_crd_ends_watches_so_that_they_see_the_new_shape(widgets: Widgets) -> None:
    watch = Watching(widgets.server, widgets.path("v2"))

    widgets.change_crd({"names": {**widgets.crd["spec"]["names"], "shortNames": ["wi"]}})

    assert watch.wait_for_end() == []
    watch.close()


def test_hits_misses_latencies_and_failures_are_on_the_metrics_page(
    widgets: Widgets, hook: Webhook
) -> None:
    server, crd = widgets.server, widgets.name
    result = 'result="{}",failure_type="{}"'
    call_failed = "conversion_webhook_call_failure"
    succeeded = f"apiserver_conversion_webhook_request_total{{{result.format('success', '')}}}"
    failed = (
        f"apiserver_conversion_webhook_request_total{{{result.format('failure', call_failed)}}}"
    )
    before = metrics(server)
    for name in ("a", "b"):
        widgets.create("v1", name)

    widgets.get("v2")
    widgets.get("v2", "a")
    hook.fault = "http_500"
    widgets.get("v2", "a", **BYPASS)

    after = metrics(server)
    where = f'webhook="{hook.url}",crd="{crd}"'
    versions = 'from_version="v1",to_version="v2"'
    upstream = "apiserver_crd_conversion_webhook_duration_seconds_count"
    assert after[f'instar_conversion_cache_total{{crd="{crd}",outcome="miss"}}'] == 2
    assert after[f'instar_conversion_cache_total{{crd="{crd}",outcome="hit"}}'] == 1
    assert after[f"instar_conversion_objects_total{{{where},{versions}}}"] == 2
    assert after[f"instar_conversion_webhook_seconds_count{{{where}}}"] == 2
    assert after[f'instar_conversion_failures_total{{{where},failure_type="{call_failed}"}}'] == 1
    assert after[f'instar_conversion_request_seconds_count{{crd="{crd}"}}'] == 2
    assert after[f'{upstream}{{crd_name="{crd}",{versions},succeeded="true"}}'] == 1
    assert after[f'{upstream}{{crd_name="{crd}",{versions},succeeded="false"}}'] == 1
    assert after[succeeded] - before.get(succeeded, 0) == 1
    assert after[failed] - before.get(failed, 0) == 1


def test_a_request_counts_the_sum_of_its_conversions(widgets: Widgets, hook: Webhook) -> None:
    widgets.create("v2", "a")

    found = metrics(widgets.server)

    where = f'crd="{widgets.name}"'
    waited = found[f"instar_conversion_request_seconds_sum{{{where}}}"]
    called = found[f'instar_conversion_webhook_seconds_sum{{webhook="{hook.url}",{where}}}']
    assert hook.reviews == 2
    assert found[f"instar_conversion_request_seconds_count{{{where}}}"] == 1
    assert waited >= called > 0


def test_time_outs_are_counted(impatient_server: LiveServer, hook: Webhook) -> None:
    widgets = Widgets(impatient_server, hook.conversion(), group=IMPATIENT_GROUPS[1])
    widgets.create("v1", "a")
    hook.fault = "stalled"

    widgets.get("v2", "a")

    where = f'webhook="{hook.url}",crd="{widgets.name}"'
    assert metrics(impatient_server)[f"instar_conversion_timeouts_total{{{where}}}"] == 1


def test_requests_that_need_no_conversion_wait_for_none(widgets: Widgets) -> None:
    widgets.create("v1", "a")

    widgets.get("v1", "a")

    waited = f'instar_conversion_request_seconds_count{{crd="{widgets.name}"}}'
    assert waited not in metrics(widgets.server)
