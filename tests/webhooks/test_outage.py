"""While a webhook is down: what can still be read, changed and removed, and how."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from instar.base.json_values import Object
from tests.support.server import Answer, LiveServer, live_server
from tests.support.waiting import eventually
from tests.support.webhook import Webhook
from tests.webhooks.support import APPLY, MERGE, Widgets, convert

HOLD = ["example.com/hold"]
UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"


@pytest.fixture
def down(server: LiveServer) -> Widgets:
    """Its objects a and held lie in v1, newer ones in v2, and nobody answers at the webhook."""
    with Webhook(convert) as hook:
        widgets = Widgets(server, hook.conversion())
        widgets.create("v1", "a")
        widgets.create("v1", "held", finalizers=HOLD)
        widgets.store_at("v2")
        widgets.create("v2", "new")
    return widgets


def _delete(widgets: Widgets, version: str, name: str, query: str = "") -> Answer:
    return widgets.server.request("DELETE", widgets.path(version, name) + query)


def _release(widgets: Widgets, name: str, namespace: str = "default") -> Answer:
    path = widgets.path("v1", name, namespace)
    body = {"metadata": {"finalizers": None}}
    return widgets.server.request("PATCH", path, body, content_type=MERGE)


def _gone(server: LiveServer, path: str) -> Callable[[], bool]:
    return lambda: server.request("GET", path).status == 404


def test_an_object_can_be_deleted_at_its_stored_version_and_not_at_an_unreadable_one(
    down: Widgets,
) -> None:
    refused = _delete(down, "v2", "a")
    answer = _delete(down, "v1", "a")

    assert (refused.status, "connection refused" in refused.json["message"]) == (500, True)
    assert (answer.status, answer.json["status"]) == (200, "Success")
    assert down.get("v1", "a").status == 404


def test_rescue_deletes_asks_no_webhook() -> None:
    with live_server(rescue_deletes=True) as server:
        with Webhook(convert) as hook:
            widgets = Widgets(server, hook.conversion())
            widgets.create("v1", "a")

        assert _delete(widgets, "v2", "a").status == 200


def test_an_object_with_finalizers_is_marked_at_the_version_it_lies_in(down: Widgets) -> None:
    answer = _delete(down, "v1", "held")

    assert answer.status == 200
    assert "deletionTimestamp" in answer.json["metadata"]
    assert down.stored("held")["apiVersion"] == f"{down.group}/v1"
    assert _release(down, "held").status == 200
    assert down.get("v1", "held").status == 404


def test_an_object_with_finalizers_is_not_touched_at_a_version_it_cannot_be_shown_at(
    down: Widgets,
) -> None:
    before = down.stored("held")

    answer = _delete(down, "v2", "held")

    assert answer.status == 500
    assert "connection refused" in answer.json["message"]
    assert down.stored("held") == before


def test_deletecollection_works_at_the_version_objects_lie_in(
    server: LiveServer,
) -> None:
    with Webhook(convert) as hook:
        widgets = Widgets(server, hook.conversion())
        widgets.create("v1", "a")
        widgets.create("v1", "held", finalizers=HOLD)

    assert server.request("DELETE", widgets.path("v2")).status == 500
    assert server.request("DELETE", widgets.path("v1")).status == 200
    assert [item["metadata"]["name"] for item in widgets.get("v1").json["items"]] == ["held"]


def test_a_crd_goes_with_its_objects(down: Widgets) -> None:
    _delete(down, "v1", "held")
    _release(down, "held")

    down.server.request("DELETE", down.crd_path)

    eventually(_gone(down.server, down.crd_path))


def test_a_crd_waits_for_finalizers_and_for_nothing_else(down: Widgets) -> None:
    down.server.request("DELETE", down.crd_path)

    eventually(lambda: "deletionTimestamp" in down.stored("held")["metadata"])
    assert down.stored("held")["apiVersion"] == f"{down.group}/v1"
    assert _release(down, "held").status == 200
    eventually(_gone(down.server, down.crd_path))


def test_a_namespace_goes_with_its_objects() -> None:
    # A server of its own: where another test has configured admission webhooks, the objects are
    # converted for them first, and the namespace waits for the conversion webhook.
    with live_server() as server:
        with Webhook(convert) as hook:
            widgets = Widgets(server, hook.conversion())
            namespace = widgets.group.replace(".", "-")
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            server.request("POST", "/api/v1/namespaces", body)
            for name, finalizers in (("a", []), ("held", HOLD)):
                obj = widgets.widget("v1", name, namespace=namespace, finalizers=finalizers)
                server.request("POST", widgets.path("v1", namespace=namespace), obj)
            widgets.store_at("v2")
        held = widgets.path("v1", "held", namespace)

        server.request("DELETE", f"/api/v1/namespaces/{namespace}")

        eventually(lambda: "deletionTimestamp" in server.request("GET", held).json["metadata"])
        assert _release(widgets, "held", namespace).status == 200
        eventually(_gone(server, f"/api/v1/namespaces/{namespace}"))


def test_the_unsafe_delete_removes_unreadable_objects_and_nothing_else(down: Widgets) -> None:
    query = f"?{UNSAFE}=true"

    readable = _delete(down, "v1", "held", query)
    unreadable = _delete(down, "v2", "held", query)

    assert (readable.status, readable.json["reason"]) == (422, "Invalid")
    assert "is exclusively used to delete corrupt object(s)" in readable.json["message"]
    assert (unreadable.status, unreadable.json["status"]) == (200, "Success")
    assert down.get("v1", "held").status == 404


@pytest.mark.parametrize(
    "body",
    [
        {"dryRun": ["All"]},
        {"propagationPolicy": "Background"},
        {"orphanDependents": True},
        {"preconditions": {"uid": "x"}},
    ],
)
def test_the_unsafe_delete_takes_no_other_wishes(body: Object, down: Widgets) -> None:
    options = {"kind": "DeleteOptions", "apiVersion": "v1", UNSAFE: True, **body}

    answer = down.server.request("DELETE", down.path("v2", "held"), options)

    assert answer.status == 422, answer.text
    assert f"cannot be set together with .{next(iter(body))}" in answer.json["message"]
    assert down.get("v1", "held").status == 200


def test_an_object_in_a_version_that_left_the_crd_is_named_and_can_be_deleted(
    down: Widgets,
) -> None:
    path = down.crd_path + "/status"
    body = {"status": {"storedVersions": ["v2"]}}
    assert down.server.request("PATCH", path, body, content_type=MERGE).status == 200
    kept = [version for version in down.get_versions() if version["name"] == "v2"]
    down.change_crd({"versions": kept})

    answer = down.get("v2", "a")
    listed = down.get("v2")

    lost = f"request to convert CR from an invalid group/version: {down.group}/v1"
    for failed in (answer, listed):
        assert (failed.status, failed.json["message"]) == (500, lost)
        told = {cause["reason"]: cause["message"] for cause in failed.json["details"]["causes"]}
        assert told["Object"] == "default/a"
        assert "served: false" in told["Advice"]
    for name in ("a", "held"):
        assert _delete(down, "v2", name).status == 500
        assert _delete(down, "v2", name, f"?{UNSAFE}=true").status == 200
    assert down.get("v2").status == 200


def test_a_write_at_the_stored_version_keeps_fields_owned_at_another_version(
    server: LiveServer,
) -> None:
    with Webhook(convert) as hook:
        widgets = Widgets(server, hook.conversion())
        widgets.create("v2", "a")

    answer = widgets.patch("v1", "a", {"spec": {"replicas": 9}})

    assert answer.status == 200
    versions = {entry["apiVersion"] for entry in answer.json["metadata"]["managedFields"]}
    assert versions == {f"{widgets.group}/v1", f"{widgets.group}/v2"}


def test_an_apply_that_cannot_read_other_managers_fields_is_refused(server: LiveServer) -> None:
    with Webhook(convert) as hook:
        widgets = Widgets(server, hook.conversion())
        widgets.create("v2", "a")
    body = widgets.widget("v1", "a", port=99)
    path = widgets.path("v1", "a") + "?fieldManager=applier"

    answer = server.request("PATCH", path, body, content_type=APPLY)

    assert answer.status == 500
    assert "connection refused" in answer.json["message"]
    assert widgets.get("v1", "a").json["spec"]["port"] == 1


def test_once_the_webhook_is_back_everything_is_as_before(server: LiveServer) -> None:
    with Webhook(convert) as hook:
        widgets = Widgets(server, hook.conversion())
        widgets.create("v1", "a")
        hook.fault = "http_503"
        assert widgets.get("v2", "a").status == 500
        hook.fault = None

        assert widgets.get("v2", "a").json["spec"]["hostPort"] == "h:1"
