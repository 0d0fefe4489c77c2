"""``--converter``: a converter of the SDK inside the server; same contract, same metrics."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook
from tests.webhooks.planted import GROUP, converter
from tests.webhooks.support import Watching, Widgets, metrics

CRD = f"widgets.{GROUP}"


@pytest.fixture(scope="module")
def unreachable() -> dict[str, object]:
    """A conversion whose webhook is gone before anybody could call it."""
    with Webhook() as hook:
        return hook.conversion()


@pytest.fixture(scope="module")
def own_server() -> Iterator[LiveServer]:
    with live_server(converters={CRD: converter.build().convert_owned}) as running:
        yield running


@pytest.fixture(scope="module")
def own(own_server: LiveServer, unreachable: dict[str, object]) -> Widgets:
    return Widgets(own_server, unreachable, group=GROUP)


def test_reads_and_writes_at_both_versions_need_no_url(own: Widgets) -> None:
    created = own.create("v2", "a", port=5)
    watch = Watching(own.server, own.path("v2", "") + "?fieldSelector=metadata.name=a")

    patched = own.patch("v2", "a", {"spec": {"hostPort": "x:6"}})
    scaled = own.patch("v2", "a/scale", {"spec": {"replicas": 3}})

    assert created["spec"]["hostPort"] == "h:5"
    assert (patched.status, scaled.status) == (200, 200)
    assert own.stored("a")["spec"] == {"host": "x", "port": 6, "replicas": 3}
    assert own.get("v2", "a").json["spec"] == {"hostPort": "x:6", "replicas": 3}
    events = watch.wait_for(lambda lines: len(lines) == 3)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED"]
    watch.close()


def test_a_refusal_of_the_author_reaches_the_client(own: Widgets) -> None:
    body = own.widget("v1", "unlucky")
    body["spec"]["host"] = "unlucky"
    own.server.request("POST", own.path("v1"), body)

    answer = own.get("v2", "unlucky")

    own.server.request("DELETE", own.path("v1", "unlucky"))
    assert answer.status == 500
    assert answer.json["message"].endswith("default/unlucky: no widget may be called unlucky")
    told = {cause["reason"]: cause["message"] for cause in answer.json["details"]["causes"]}
    assert told["CustomResourceDefinition"] == CRD
    assert told["Object"] == "default/unlucky"
    assert told["Webhook"] == f"in-process converter of {CRD}"


def test_it_is_measured_and_remembered_like_a_webhook(own: Widgets) -> None:
    own.create("v1", "counted")
    before = metrics(own.server)

    for _ in range(2):
        assert own.get("v2", "counted").status == 200

    after = metrics(own.server)
    where = f'webhook="in-process converter of {CRD}",crd="{CRD}"'
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown[f"instar_conversion_webhook_seconds_count{{{where}}}"] == 1
    assert grown[f'instar_conversion_cache_total{{crd="{CRD}",outcome="hit"}}'] == 1
    assert grown[f'instar_conversion_cache_total{{crd="{CRD}",outcome="miss"}}'] == 1
    upstream = 'apiserver_conversion_webhook_request_total{result="success",failure_type=""}'
    assert grown[upstream] == 1


def test_other_crds_still_call_their_webhooks(own_server: LiveServer, hook: Webhook) -> None:
    other = Widgets(own_server, hook.conversion())
    other.create("v1", "a")

    assert other.get("v2", "a").json["spec"]["hostPort"] == "h:1"
    assert hook.reviews == 1


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("widgets.example.com", "widgets.example.com"),
        (f"{CRD}=tests.webhooks.planted:not_a_converter", "is a str"),
        (f"{CRD}=tests.webhooks.nowhere:converter", "no module"),
    ],
)
def test_a_wrong_converter_stops_the_server_from_starting(spec: str, told: str) -> None:
    command = [sys.executable, "-m", "instar", "serve", "--storage", "memory:", "--listen"]

    done = subprocess.run(
        [*command, "127.0.0.1:0", "--converter", spec],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode != 0
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["widgets.example.com", "=5", "w.example.com=soon", "w.e.com=0"])
def test_a_wrong_timeout_stops_the_server_from_starting(text: str) -> None:
    with pytest.raises(ValueError, match="CRD_NAME=SECONDS"), live_server(webhook_timeouts=(text,)):
        pass
