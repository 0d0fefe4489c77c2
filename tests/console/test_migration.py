"""A migration is started, paused, watched, verified and trimmed; nothing else is offered."""

from __future__ import annotations

import pytest

from instar.base.json_values import Object
from instar.tools.console.setup import console_front
from tests.console.support import Browser
from tests.console.worlds import renaming, store, widget, widgets
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually
from tests.support.webhook import Webhook

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def page(browser: Browser, group: str, query: str = "") -> Object:
    answer = browser.request("GET", f"/console/api/crds/widgets.{group}/migration{query}")
    assert answer.status == 200, answer.text
    found: Object = answer.json
    return found


def act(browser: Browser, group: str, action: str) -> Object:
    answer = browser.request("POST", f"/console/api/crds/widgets.{group}/migration/{action}", {})
    assert answer.status == 200, answer.text
    found: Object = answer.json
    return found


def why(document: Object, action: str) -> list[str]:
    found: list[str] = next(item["why"] for item in document["actions"] if item["action"] == action)
    return found


def old_world(server: LiveServer, group: str, hook: Webhook | None, count: int = 3) -> None:
    """Objects stored at v1beta1, and v1 the storage version by now."""
    spec = {} if hook is None else {"conversion": hook.conversion()}
    crd = widgets(group, **spec)
    beta, stable = crd["spec"]["versions"]
    beta["storage"], stable["storage"] = True, False
    server.create_crd(crd)
    for number in range(count):
        store(server, widget(group, f"w{number}", at="v1beta1", size=number))
    beta["storage"], stable["storage"] = False, True
    patch = {"spec": {"versions": [beta, stable]}}
    answer = server.request("PATCH", f"{CRDS}/widgets.{group}", patch, content_type=MERGE)
    assert answer.status == 200, answer.text


def test_a_migration_is_run_to_its_end_and_verified(console: LiveServer, browser: Browser) -> None:
    group = "moved.example.com"
    with Webhook(renaming) as hook:
        old_world(console, group, hook)
        planned = page(browser, group)

        act(browser, group, "start")
        eventually(lambda: page(browser, group, "?plan=0")["migration"]["state"] == "succeeded")
        eventually(lambda: page(browser, group, "?plan=0")["stale"] == 0)
        verified = act(browser, group, "verify")["verified"]

    assert planned["plan"]["needed"] is True
    assert planned["stale"] == 3
    assert why(planned, "start") == []
    assert why(planned, "pause") == ["no migration is running"]
    assert "3 objects may be stored at v1beta1" in why(planned, "trim")[0]
    assert (verified["ok"], verified["objects"], verified["problems"]) == (True, 3, [])


def test_a_paused_migration_rewrites_nothing_until_it_is_resumed() -> None:
    group = "paused.example.com"
    with (
        live_server(front=console_front(), conversion_cache=False) as server,
        Webhook(renaming) as hook,
    ):
        browser = Browser(server)
        browser.sign_in(server.token)
        old_world(server, group, hook, count=120)
        hook.pause()
        path = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
        asked = {
            "apiVersion": "storagemigration.k8s.io/v1",
            "kind": "StorageVersionMigration",
            "metadata": {"name": "mine"},
            "spec": {"resource": {"group": group, "resource": "widgets"}},
        }
        assert browser.request("POST", path, asked).status == 201
        eventually(lambda: page(browser, group, "?plan=0")["migration"]["total"] == 120)
        paused = act(browser, group, "pause")
        hook.resume()

        def told() -> bool:
            found = browser.request("GET", f"{path}/mine").json["status"]["conditions"]
            return any(item["reason"] == "MigrationPaused" for item in found)

        eventually(told)
        held = page(browser, group, "?plan=0")
        act(browser, group, "resume")
        eventually(lambda: page(browser, group, "?plan=0")["migration"]["state"] == "succeeded")

    assert paused["migration"]["state"] == "paused"
    assert held["stale"] == 20
    assert why(held, "start") == ["a migration is paused"]
    assert why(held, "resume") == []


def test_a_migration_without_work_is_reported(console: LiveServer, browser: Browser) -> None:
    console.create_crd(widgets("tidy.example.com"))

    document = page(browser, "tidy.example.com")
    answer = browser.request(
        "POST", "/console/api/crds/widgets.tidy.example.com/migration/start", {}
    )

    assert document["migration"] is None
    assert why(document, "start")[0].startswith("nothing to do")
    assert why(document, "trim") == ["status.storedVersions names v1 only"]
    assert answer.status == 409
    assert answer.json["details"]["causes"][0]["message"].startswith("nothing to do")


def test_stored_versions_are_trimmed_when_nothing_is_left(
    console: LiveServer, browser: Browser
) -> None:
    group = "trim.example.com"
    old_world(console, group, None, count=0)

    document = act(browser, group, "trim")

    crd = console.request("GET", f"{CRDS}/widgets.{group}").json
    assert crd["status"]["storedVersions"] == ["v1"]
    assert why(document, "trim") == ["status.storedVersions names v1 only"]


def test_a_migration_that_cannot_succeed_names_the_objects(
    console: LiveServer, browser: Browser
) -> None:
    group = "broken.example.com"
    with Webhook(renaming) as hook:
        old_world(console, group, hook)

    document = page(browser, group)
    verified = act(browser, group, "verify")["verified"]

    assert any("cannot be used" in reason for reason in why(document, "start"))
    assert verified["ok"] is False


@pytest.mark.parametrize("action", ["destroy", "start/now"])
def test_there_are_no_other_actions(console: LiveServer, browser: Browser, action: str) -> None:
    path = f"/console/api/crds/widgets.tidy.example.com/migration/{action}"

    assert browser.request("POST", path, {}).status in (400, 404)


def test_actions_without_permission_are_not_offered(console: LiveServer) -> None:
    group = "rights.example.com"
    old_world(console, group, None, count=1)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer"}}
    console.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "viewer"},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
            {"nonResourceURLs": ["/instar/*"], "verbs": ["get"]},
        ],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "viewer"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "viewer",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}],
    }
    for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
        made = console.request("POST", f"/apis/rbac.authorization.k8s.io/v1/{plural}", body)
        assert made.status == 201, made.text
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = "/api/v1/namespaces/default/serviceaccounts/viewer/token"
    token = console.request("POST", path, asked).json["status"]["token"]
    viewer = Browser(console)
    viewer.sign_in(token)

    document = page(viewer, group)
    paste = {"object": widget(group, "a", width=1)}

    assert any("you may not create" in reason for reason in why(document, "start"))
    assert viewer.request("POST", "/console/api/convert", paste).status == 403
    assert viewer.request("GET", "/console/api/overview").status == 200
