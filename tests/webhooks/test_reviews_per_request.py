"""How many reviews each request costs, with a cold and a warm cache."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.server import Answer, LiveServer, live_server
from tests.support.webhook import Webhook
from tests.webhooks.support import APPLY, JSON_PATCH, MERGE, Watching, Widgets

Act = Callable[[Widgets], Answer]


def _put(widgets: Widgets, subresource: str, **spec: object) -> Answer:
    path = widgets.path("v2", "a") + subresource
    body = widgets.server.request("GET", path).json
    part = "status" if subresource == "/status" else "spec"
    body[part] = {**body.get(part, {}), **spec}
    return widgets.server.request("PUT", path, body)


def _patch(widgets: Widgets, subresource: str, body: object, media: str = MERGE) -> Answer:
    return widgets.server.request(
        "PATCH", widgets.path("v2", "a") + subresource, body, content_type=media
    )


def _apply(widgets: Widgets) -> Answer:
    body = widgets.widget("v2", "a")
    body["spec"] = {"replicas": 7}
    path = widgets.path("v2", "a") + "?fieldManager=applier&force=true"
    return widgets.server.request("PATCH", path, body, content_type=APPLY)


READS: dict[str, Act] = {
    "get": lambda widgets: widgets.get("v2", "a"),
    "list": lambda widgets: widgets.get("v2"),
    "get status": lambda widgets: widgets.get("v2", "a/status"),
    "get scale": lambda widgets: widgets.get("v2", "a/scale"),
    "list with labels": lambda widgets: widgets.get("v2", "?labelSelector=x=y"),
    "list with a field": lambda widgets: widgets.get("v2", "?fieldSelector=spec.hostPort=h:1"),
}

WRITES: dict[str, Act] = {
    "update": lambda widgets: _put(widgets, "", replicas=2),
    "merge patch": lambda widgets: _patch(widgets, "", {"spec": {"replicas": 3}}),
    "json patch": lambda widgets: _patch(
        widgets, "", [{"op": "replace", "path": "/spec/replicas", "value": 4}], JSON_PATCH
    ),
    "apply": _apply,
    "update status": lambda widgets: _put(widgets, "/status", phase="x"),
    "patch status": lambda widgets: _patch(widgets, "/status", {"status": {"phase": "y"}}),
    "update scale": lambda widgets: _put(widgets, "/scale", replicas=5),
    "patch scale": lambda widgets: _patch(widgets, "/scale", {"spec": {"replicas": 6}}),
}


@pytest.mark.parametrize("verb", READS)
def test_a_cold_read_of_many_objects_is_one_review_and_a_warm_one_none(
    verb: str, widgets: Widgets, hook: Webhook
) -> None:
    for name in ("a", "b", "c"):
        widgets.create("v1", name)
    hook.calls.clear()

    first = READS[verb](widgets)
    cold = hook.reviews
    second = READS[verb](widgets)

    assert (first.status, second.status) == (200, 200), first.text
    assert (cold, hook.reviews - cold) == (1, 0)


@pytest.mark.parametrize("verb", WRITES)
def test_a_write_at_another_version_is_two_reviews_whichever_manager_owns_the_fields(
    verb: str, widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v1", "a")
    assert widgets.get("v2", "a").status == 200
    hook.calls.clear()

    answer = WRITES[verb](widgets)

    assert answer.status == 200, answer.text
    assert hook.reviews == 2
    managers = {entry["apiVersion"] for entry in widgets.stored("a")["metadata"]["managedFields"]}
    assert managers == {f"{widgets.group}/v1", f"{widgets.group}/v2"}


@pytest.mark.parametrize("verb", WRITES)
def test_a_write_after_a_write_at_the_same_version_is_two_reviews(
    verb: str, widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v2", "a", port=9)
    hook.calls.clear()

    answer = WRITES[verb](widgets)

    assert answer.status == 200, answer.text
    assert hook.reviews == 2


def test_a_create_is_two_reviews_and_the_read_after_it_none(
    widgets: Widgets, hook: Webhook
) -> None:
    created = widgets.create("v2", "a", port=5)

    assert hook.reviews == 2
    assert widgets.get("v2", "a").json == created
    assert widgets.get("v2").json["items"] == [created]
    assert hook.reviews == 2
    assert widgets.stored("a")["spec"] == {"host": "h", "port": 5, "replicas": 1}


def test_creating_what_exists_asks_as_upstream_does(widgets: Widgets, hook: Webhook) -> None:
    widgets.create("v1", "a")

    answer = widgets.server.request("POST", widgets.path("v2"), widgets.widget("v2", "a"))

    assert (answer.status, answer.json["reason"]) == (409, "AlreadyExists")
    assert hook.reviews == 2


@pytest.mark.parametrize("verb", ["update", "merge patch", "patch status", "apply"])
def test_a_write_that_changes_nothing_calls_no_webhook(
    verb: str, widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v1", "a")
    before = WRITES[verb](widgets).json
    hook.calls.clear()

    again = WRITES[verb](widgets)

    assert again.json == before
    assert hook.reviews == 0


def test_requests_at_the_stored_version_call_no_webhook(widgets: Widgets, hook: Webhook) -> None:
    widgets.create("v1", "a", labels={"x": "y"})

    answers = [
        widgets.get("v1", "a"),
        widgets.get("v1"),
        widgets.get("v1", "?labelSelector=x=y"),
        widgets.get("v1", "?fieldSelector=spec.host=h"),
        widgets.patch("v1", "a", {"spec": {"replicas": 3}}),
        widgets.patch("v1", "a/status", {"status": {"phase": "x"}}),
        widgets.patch("v1", "a/scale", {"spec": {"replicas": 4}}),
        widgets.server.request("DELETE", widgets.path("v1", "a")),
    ]

    assert [answer.status for answer in answers] == [200] * len(answers)
    assert hook.reviews == 0


def test_an_empty_list_calls_no_webhook(widgets: Widgets, hook: Webhook) -> None:
    assert widgets.get("v2").json["items"] == []
    assert hook.reviews == 0


def test_only_uncached_objects_are_sent_in_the_order_of_the_list(
    widgets: Widgets, hook: Webhook
) -> None:
    for number, name in enumerate("abcde"):
        widgets.create("v1", name, port=number)
    assert widgets.get("v2", "c").status == 200
    hook.calls.clear()

    listed = widgets.get("v2").json["items"]

    assert [item["spec"]["hostPort"] for item in listed] == [f"h:{n}" for n in range(5)]
    [call] = hook.calls
    sent = [obj["metadata"]["name"] for obj in call.review["request"]["objects"]]
    assert sent == ["a", "b", "d", "e"]


def test_each_page_of_a_list_is_one_review(widgets: Widgets, hook: Webhook) -> None:
    for name in "abcd":
        widgets.create("v1", name)

    first = widgets.get("v2", "?limit=2").json
    second = widgets.get("v2", f"?limit=2&continue={first['metadata']['continue']}").json

    assert [item["metadata"]["name"] for item in first["items"] + second["items"]] == list("abcd")
    assert [len(call.review["request"]["objects"]) for call in hook.calls] == [2, 2]


def test_a_field_selector_on_the_name_converts_that_object_alone(
    widgets: Widgets, hook: Webhook
) -> None:
    for name in "abc":
        widgets.create("v1", name)

    listed = widgets.get("v2", "?fieldSelector=metadata.name=b").json["items"]

    assert [item["metadata"]["name"] for item in listed] == ["b"]
    assert hook.objects == 1


def test_a_delete_at_another_version_is_one_review(widgets: Widgets, hook: Webhook) -> None:
    widgets.create("v1", "a")

    answer = widgets.server.request("DELETE", widgets.path("v2", "a"))

    assert (answer.status, answer.json["status"]) == (200, "Success")
    assert hook.reviews == 1


def test_a_delete_that_waits_for_finalizers_is_one_review_for_its_answer(
    widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v1", "a", port=3, finalizers=["example.com/hold"])
    assert widgets.get("v2", "a").status == 200
    hook.calls.clear()

    first = widgets.server.request("DELETE", widgets.path("v2", "a"))
    second = widgets.server.request("DELETE", widgets.path("v2", "a"))

    assert first.status == 200
    assert "deletionTimestamp" in first.json["metadata"]
    assert first.json["spec"]["hostPort"] == "h:3"
    assert second.json == first.json == widgets.get("v2", "a").json
    assert hook.reviews == 1


def test_releasing_the_last_finalizer_at_another_version_calls_no_webhook_when_cached(
    widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v1", "a", finalizers=["example.com/hold"])
    widgets.server.request("DELETE", widgets.path("v2", "a"))
    hook.calls.clear()

    answer = widgets.patch("v2", "a", {"metadata": {"finalizers": None}})

    assert answer.status == 200, answer.text
    assert widgets.get("v1", "a").status == 404
    assert hook.reviews == 0


def test_deletecollection_is_one_review_for_what_it_lists(widgets: Widgets, hook: Webhook) -> None:
    for name in "abc":
        widgets.create("v1", name)

    answer = widgets.server.request("DELETE", widgets.path("v2"))

    assert [item["spec"]["hostPort"] for item in answer.json["items"]] == ["h:1"] * 3
    assert hook.reviews == 1
    assert widgets.get("v1").json["items"] == []


def test_a_dry_run_shows_what_would_be_read_and_stores_nothing(
    widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v1", "a")

    body = {"spec": {"hostPort": "new:7"}}
    answer = widgets.patch("v2", "a?dryRun=All", body)
    created = widgets.server.request(
        "POST", widgets.path("v2") + "?dryRun=All", widgets.widget("v2", "b")
    )

    assert answer.json["spec"]["hostPort"] == "new:7"
    assert created.status == 201
    assert widgets.get("v2", "a").json["spec"]["hostPort"] == "h:1"
    assert widgets.get("v2", "b").status == 404


def test_many_watchers_of_a_version_share_one_review_per_event(
    widgets: Widgets, hook: Webhook
) -> None:
    watches = [Watching(widgets.server, widgets.path("v2")) for _ in range(10)]
    labelled = Watching(widgets.server, widgets.path("v2") + "?labelSelector=x=y")

    widgets.create("v1", "a", labels={"x": "y"})
    for watch in [*watches, labelled]:
        [event] = watch.wait_for(lambda lines: len(lines) == 1)
        assert event["object"]["spec"]["hostPort"] == "h:1"
        watch.close()

    assert hook.reviews == 1


def test_watchers_cost_a_writer_at_their_version_nothing_more(
    widgets: Widgets, hook: Webhook
) -> None:
    watch = Watching(widgets.server, widgets.path("v2"))

    created = widgets.create("v2", "a")

    [event] = watch.wait_for(lambda lines: len(lines) == 1)
    assert event == {"type": "ADDED", "object": created}
    assert hook.reviews == 2
    watch.close()


def test_a_watch_from_the_past_converts_what_it_missed_in_one_review(
    widgets: Widgets, hook: Webhook
) -> None:
    start = widgets.create("v1", "a")["metadata"]["resourceVersion"]
    for number in range(5):
        widgets.patch("v1", "a", {"spec": {"port": number + 2}})

    watch = Watching(widgets.server, widgets.path("v2") + f"?resourceVersion={start}")
    events = watch.wait_for(lambda lines: len(lines) == 5)
    watch.close()

    ports = [event["object"]["spec"]["hostPort"] for event in events]
    assert ports == [f"h:{number + 2}" for number in range(5)]
    assert hook.reviews == 1


def test_field_ownership_at_another_version_is_one_review_at_most(
    widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v2", "a")
    hook.calls.clear()

    changed = widgets.patch("v1", "a", {"spec": {"port": 9}})
    first = hook.reviews
    unchanged = widgets.patch("v1", "a", {"spec": {"port": 9}})

    assert changed.status == 200
    assert first == 1
    assert hook.reviews == first
    assert unchanged.json == changed.json
    fields = {
        entry["apiVersion"].rpartition("/")[2]: entry["fieldsV1"]
        for entry in changed.json["metadata"]["managedFields"]
    }
    assert "f:hostPort" not in fields["v2"]["f:spec"]


@pytest.fixture(scope="module")
def forgetful_server() -> object:
    with live_server(conversion_cache=False) as running:
        yield running


@pytest.mark.parametrize("verb", WRITES)
def test_without_a_cache_the_review_for_reading_comes_on_top_and_none_after_the_commit(
    verb: str, forgetful_server: LiveServer, hook: Webhook
) -> None:
    widgets = Widgets(forgetful_server, hook.conversion())
    widgets.create("v1", "a")
    reading = 2 if verb.startswith("update") else 1

    answer = WRITES[verb](widgets)

    assert answer.status == 200, answer.text
    assert hook.reviews <= reading + 2
