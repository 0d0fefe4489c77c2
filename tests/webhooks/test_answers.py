"""What a webhook may change and what not, seen by a client; and that nothing is half done."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from instar.base.json_values import Object
from tests.support.server import LiveServer
from tests.support.webhook import Convert, Webhook
from tests.webhooks.support import Watching, Widgets, convert


def _only_towards(version: str) -> Convert:
    def picky(obj: Object, api_version: str) -> Object:
        if not api_version.endswith(version):
            raise ValueError(f"not to {api_version}")
        return convert(obj, api_version)

    return picky


def _port_as_label(obj: Object, api_version: str) -> Object:
    converted = convert(obj, api_version)
    if api_version.endswith("/v2"):
        port = converted["spec"].get("hostPort", ":").rpartition(":")[2]
        labels = {**(obj["metadata"].get("labels") or {}), "port": port}
        return {**converted, "metadata": {**obj["metadata"], "labels": labels}}
    labels = {k: v for k, v in (obj["metadata"].get("labels") or {}).items() if k != "port"}
    return {**converted, "metadata": {**obj["metadata"], "labels": labels}}


def test_labels_and_annotations_are_the_webhooks_to_change_and_nothing_else_of_metadata(
    widgets: Widgets, hook: Webhook
) -> None:
    def meddle(obj: Object, api_version: str) -> Object:
        metadata = {
            **obj["metadata"],
            "labels": {"new": "label"},
            "annotations": {"new": "annotation"},
            "finalizers": ["example.com/x"],
            "ownerReferences": [],
            "generation": 77,
            "creationTimestamp": "2000-01-01T00:00:00Z",
            "managedFields": [],
            "unknown": 1,
        }
        return {**convert(obj, api_version), "metadata": metadata}

    plain = widgets.create("v1", "a", labels={"old": "label"})["metadata"]
    hook.convert = meddle

    seen = widgets.get("v2", "a").json["metadata"]

    assert seen.pop("labels") == {"new": "label"}
    assert seen.pop("annotations") == {"new": "annotation"}
    assert seen == {key: value for key, value in plain.items() if key != "labels"}
    assert widgets.get("v1", "a").json["metadata"] == plain


def test_a_list_is_complete_or_an_error_that_names_the_culprit(
    widgets: Widgets, hook: Webhook
) -> None:
    def picky(obj: Object, api_version: str) -> Object:
        if obj["spec"].get("port") == 2:
            return {**convert(obj, api_version), "kind": "Gadget"}
        return convert(obj, api_version)

    for number, name in enumerate("abcd"):
        widgets.create("v1", name, port=number)
    hook.convert = picky

    listed = widgets.get("v2")

    assert listed.status == 500
    told = {cause["reason"]: cause["message"] for cause in listed.json["details"]["causes"]}
    assert told["Object"] == "default/c"
    assert "invalid kind (expected Widget, received Gadget)" in listed.json["message"]
    assert widgets.get("v2", "b").json["spec"]["hostPort"] == "h:1"


def test_a_bad_object_fails_only_requests_for_it(widgets: Widgets, hook: Webhook) -> None:
    def picky(obj: Object, api_version: str) -> Object:
        return {**convert(obj, api_version), "kind": "Gadget" if obj["spec"]["port"] else "Widget"}

    widgets.create("v1", "bad", port=1)
    widgets.create("v1", "good", port=0)
    hook.convert = picky
    hook.pause()
    with ThreadPoolExecutor(2) as pool:
        everything = pool.submit(widgets.get, "v2")
        hook.wait_for_calls(1)
        one = pool.submit(widgets.get, "v2", "good")
        hook.resume()

    assert everything.result().status == 500
    assert one.result().status == 200


@pytest.mark.parametrize("direction", ["v1", "v2"])
def test_a_create_that_fails_either_way_stores_nothing(
    direction: str, widgets: Widgets, hook: Webhook
) -> None:
    hook.convert = _only_towards(direction)

    answer = widgets.server.request("POST", widgets.path("v2"), widgets.widget("v2", "a"))

    assert answer.status == 500
    assert widgets.get("v1", "a").status == 404


@pytest.mark.parametrize("direction", ["v1", "v2"])
@pytest.mark.parametrize("subresource", ["", "/status", "/scale"])
def test_a_change_that_fails_either_way_changes_nothing(
    subresource: str, direction: str, widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v2", "a")
    before = widgets.stored("a")
    hook.convert = _only_towards(direction)
    part = {"status": {"phase": "x"}} if subresource == "/status" else {"spec": {"replicas": 8}}

    answer = widgets.patch("v2", f"a{subresource}", part)

    assert answer.status == 500
    assert widgets.stored("a") == before


def test_a_client_that_leaves_while_its_write_is_reviewed_has_written_nothing(
    widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v2", "a")
    before = widgets.stored("a")
    hook.pause()
    calls = hook.reviews
    connection = widgets.server.connection()
    headers = {
        "Authorization": f"Bearer {widgets.server.token}",
        "Content-Type": "application/merge-patch+json",
    }
    body = '{"spec": {"replicas": 9}}'
    connection.request("PATCH", widgets.path("v2", "a"), body=body, headers=headers)
    hook.wait_for_calls(calls + 1)

    connection.close()
    assert widgets.get("v1", "a").status == 200
    hook.resume()

    assert widgets.patch("v2", "a", {"spec": {"replicas": 2}}).status == 200
    assert widgets.stored("a")["metadata"]["generation"] == before["metadata"]["generation"] + 1


def test_selectors_see_the_labels_a_webhook_sets(widgets: Widgets, hook: Webhook) -> None:
    hook.convert = _port_as_label
    for port, name in enumerate("abc"):
        widgets.create("v1", name, port=port)

    by_label = widgets.get("v2", "?labelSelector=port=1").json["items"]
    by_field = widgets.get("v2", "?fieldSelector=spec.hostPort=h:2").json["items"]

    assert [item["metadata"]["name"] for item in by_label] == ["b"]
    assert [item["metadata"]["name"] for item in by_field] == ["c"]
    assert widgets.get("v1", "?labelSelector=port=1").json["items"] == []


def test_a_watch_with_a_selector_follows_what_the_webhook_makes_of_objects(
    widgets: Widgets, hook: Webhook
) -> None:
    hook.convert = _port_as_label
    watch = Watching(widgets.server, widgets.path("v2") + "?labelSelector=port=1")

    widgets.create("v1", "a", port=0)
    for port in (1, 1, 5, 1):
        widgets.patch("v1", "a", {"spec": {"port": port, "replicas": port}})
    widgets.server.request("DELETE", widgets.path("v1", "a"))

    events = watch.wait_for(lambda lines: len(lines) == 4)
    watch.close()
    assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED", "DELETED"]


def test_deletecollection_with_a_selector_removes_what_a_list_with_it_shows(
    widgets: Widgets, hook: Webhook
) -> None:
    hook.convert = _port_as_label
    for port, name in enumerate("abc"):
        widgets.create("v1", name, port=port)

    answer = widgets.server.request("DELETE", widgets.path("v2") + "?labelSelector=port=1")

    assert [item["metadata"]["name"] for item in answer.json["items"]] == ["b"]
    left = [item["metadata"]["name"] for item in widgets.get("v1").json["items"]]
    assert left == ["a", "c"]


def test_one_webhook_of_two_crds_is_called_for_each(server: LiveServer, hook: Webhook) -> None:
    first, second = (Widgets(server, hook.conversion()) for _ in range(2))
    for widgets in (first, second):
        widgets.create("v1", "a", port=3)
        assert widgets.get("v2", "a").json["spec"]["hostPort"] == "h:3"

    assert hook.reviews == 2
    assert hook.connections == 1
