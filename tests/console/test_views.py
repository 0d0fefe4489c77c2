"""What pages need besides the Kubernetes API, asked as a browser asks."""

from __future__ import annotations

import pytest

from instar.base.json_values import Object
from tests.console.support import Browser
from tests.console.worlds import forgetting, renaming, store, widget, widgets
from tests.support.server import LiveServer
from tests.support.webhook import Webhook


def row(browser: Browser, name: str) -> Object:
    answer = browser.request("GET", "/console/api/overview")
    assert answer.status == 200, answer.text
    found: Object = next(crd for crd in answer.json["crds"] if crd["name"] == name)
    return found


def test_home_shows_what_is_stored_at_which_version(console: LiveServer, browser: Browser) -> None:
    console.create_crd(widgets("home.example.com"))
    store(console, widget("home.example.com", "a", width=1))
    console.request("GET", "/apis/home.example.com/v1beta1/widgets", headers={"User-Agent": "argo"})

    found = row(browser, "widgets.home.example.com")

    old, new = found["versions"]
    assert (found["total"], found["storageVersion"], found["kind"]) == (1, "v1", "Widget")
    assert (old["stored"], old["recent"], old["deprecated"]) == (0, 1, True)
    assert (new["stored"], new["recent"]) == (1, 1)
    assert found["conversion"] == {"strategy": "None", "failures": 0, "lastFailure": None}


def test_viewing_versions_in_the_console_does_not_count_as_use(
    console: LiveServer, browser: Browser
) -> None:
    console.create_crd(widgets("looked.example.com"))
    browser.request("GET", "/apis/looked.example.com/v1beta1/widgets")

    old = row(browser, "widgets.looked.example.com")["versions"][0]

    assert (old["recent"], old["lastUsed"]) == (0, None)


def test_home_is_live(console: LiveServer, browser: Browser) -> None:
    crd = console.create_crd(widgets("live.example.com"))
    before = row(browser, "widgets.live.example.com")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.live.example.com"
    old, new = crd["spec"]["versions"]
    patch = {"spec": {"versions": [{**old, "deprecated": False}, new]}}
    merge = "application/merge-patch+json"
    assert console.request("PATCH", path, patch, content_type=merge).status == 200

    after = row(browser, "widgets.live.example.com")

    assert before["versions"][0]["deprecated"] is True
    assert after["versions"][0]["deprecated"] is False


def test_versions_show_their_clients_and_possible_steps(
    console: LiveServer, browser: Browser
) -> None:
    console.create_crd(widgets("used.example.com"))
    console.request(
        "GET", "/apis/used.example.com/v1beta1/widgets", headers={"User-Agent": "argocd/2.9"}
    )

    answer = browser.request("GET", "/console/api/crds/widgets.used.example.com/versions")

    [old, _] = answer.json["versions"]
    assert old["uses"][0]["userAgent"] == "argocd/2.9"
    unserve = next(step for step in old["next"] if step["step"] == "unserve")
    assert "it is in use: argocd/2.9" in unserve["blockedBy"][0]
    assert unserve["command"] == "instar versions widgets.used.example.com unserve v1beta1"


def test_a_step_that_the_command_would_refuse_is_refused_with_every_reason(
    console: LiveServer, browser: Browser
) -> None:
    console.create_crd(widgets("steps.example.com"))
    path = "/console/api/crds/widgets.steps.example.com/versions"

    answer = browser.request("POST", f"{path}/v1beta1/remove", {})

    assert answer.status == 409
    texts = [cause["message"] for cause in answer.json["details"]["causes"]]
    assert any("still served" in text for text in texts)


def test_a_step_that_is_safe_is_taken(console: LiveServer, browser: Browser) -> None:
    crd = widgets("taken.example.com")
    crd["spec"]["versions"][0]["deprecated"] = False
    console.create_crd(crd)
    path = "/console/api/crds/widgets.taken.example.com/versions"

    answer = browser.request("POST", f"{path}/v1beta1/deprecate", {"warning": "use v1"})

    assert answer.status == 200, answer.text
    assert answer.json["versions"][0]["deprecated"] is True


def test_fields_that_are_set_and_fields_that_never_are(
    console: LiveServer, browser: Browser
) -> None:
    console.create_crd(widgets("fields.example.com"))
    for name in "ab":
        store(console, widget("fields.example.com", name, width=1))

    answer = browser.request("GET", "/console/api/crds/widgets.fields.example.com/fields")
    part = browser.request("GET", "/console/api/crds/widgets.fields.example.com/fields?most=1")

    document = answer.json
    width = next(field for field in document["fields"] if field["path"] == "spec.width")
    assert (document["objects"], document["complete"], width["objects"]) == (2, True, 2)
    assert width["inSchema"] is True
    assert "spec.legacy" in document["never"]
    assert (part.json["objects"], part.json["complete"]) == (1, False)


def test_an_object_at_every_version_with_the_stored_one_marked(
    console: LiveServer, browser: Browser
) -> None:
    group = "every.example.com"
    with Webhook(renaming) as hook:
        console.create_crd(widgets(group, conversion=hook.conversion()))
        store(console, widget(group, "a", width=7))
        path = f"/console/api/crds/widgets.{group}/objects/default/a"

        found = browser.request("GET", path).json
        hook.fault = "refused"
        console.request("DELETE", f"/apis/{group}/v1/namespaces/default/widgets/b")

    old, new = found["versions"]
    assert found["storedVersion"] == "v1"
    assert (old["object"]["spec"], old["stored"]) == ({"size": 7}, False)
    assert (new["object"]["spec"], new["stored"]) == ({"width": 7}, True)


def test_an_object_that_is_not_there_is_not_found(console: LiveServer, browser: Browser) -> None:
    console.create_crd(widgets("gone.example.com"))
    path = "/console/api/crds/widgets.gone.example.com/objects/default/nobody"

    assert browser.request("GET", path).status == 404


def test_a_webhook_that_is_down_is_reported_and_the_other_versions_are_shown(
    console: LiveServer, browser: Browser
) -> None:
    group = "down.example.com"
    with Webhook(renaming) as hook:
        console.create_crd(widgets(group, conversion=hook.conversion()))
        store(console, widget(group, "a", width=7))

    found = browser.request("GET", f"/console/api/crds/widgets.{group}/objects/default/a").json
    webhooks = browser.request("GET", "/console/api/webhooks").json["webhooks"]

    old, new = found["versions"]
    assert "conversion webhook" in old["error"]["message"]
    assert new["object"]["spec"] == {"width": 7}
    mine = next(item for item in webhooks if item["id"] == f"conversion/widgets.{group}")
    assert (mine["health"], mine["failures"]) == ("failing", 1)
    assert "connection refused" in mine["recentFailures"][0]["text"]
    assert row(browser, f"widgets.{group}")["conversion"]["failures"] == 1


def test_a_webhook_that_does_well(console: LiveServer, browser: Browser) -> None:
    group = "well.example.com"
    with Webhook(renaming) as hook:
        console.create_crd(widgets(group, conversion=hook.conversion()))
        store(console, widget(group, "a", width=7, at="v1"))
        console.request("GET", f"/apis/{group}/v1beta1/widgets")

        found = browser.request("GET", "/console/api/webhooks").json["webhooks"]

    mine = next(item for item in found if item["id"] == f"conversion/widgets.{group}")
    assert (mine["health"], mine["calls"], mine["failures"]) == ("ok", 1, 0)
    assert len(mine["latency"]["counts"]) == len(mine["latency"]["bounds"]) + 1
    assert mine["latency"]["p50"] > 0
    assert {item["what"] for item in mine["certificates"]} == {"caBundle", "serving"}
    assert all(item["notAfter"] for item in mine["certificates"])


def test_a_pasted_object_is_seen_at_every_version(console: LiveServer, browser: Browser) -> None:
    group = "paste.example.com"
    with Webhook(forgetting) as hook:
        console.create_crd(widgets(group, conversion=hook.conversion()))
        text = (
            f"apiVersion: {group}/v1beta1\nkind: Widget\nmetadata: {{name: a}}\n"
            "spec: {size: 3, legacy: x, typo: 1}\n"
        )

        answer = browser.request("POST", "/console/api/convert", {"text": text})

    document = answer.json
    assert answer.status == 200, answer.text
    assert document["pruned"] == ["spec.typo"]
    assert document["versions"][1]["object"]["spec"] == {"width": 3}
    assert document["roundTrip"]["differences"] == ['lost     spec.legacy = "x"']
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    assert console.request("GET", path).json["items"] == []


@pytest.mark.parametrize(
    "body",
    [{}, {"text": "a: ["}, {"text": "[]"}, {"object": {"kind": "X"}}, {"object": 3}, {"text": 3}],
)
def test_a_value_that_is_not_an_object_is_reported(browser: Browser, body: object) -> None:
    answer = browser.request("POST", "/console/api/convert", body)

    assert answer.status == 400
    assert answer.json["kind"] == "Status"


def test_an_object_of_an_unknown_kind_is_not_found(browser: Browser) -> None:
    shown = {"object": {"apiVersion": "none.example.com/v1", "kind": "Nothing", "metadata": {}}}

    assert browser.request("POST", "/console/api/convert", shown).status == 404


def test_rules_and_laws_are_explained(browser: Browser) -> None:
    rules = browser.request("GET", "/console/api/rules").json["rules"]
    laws = browser.request("GET", "/console/api/laws").json["laws"]

    assert len(rules) > 50
    assert all(rule["advice"] and rule["summary"] for rule in rules)
    assert all(law["title"] for law in laws)


@pytest.mark.parametrize("path", ["overview", "webhooks", "crds/x.example.com/versions"])
def test_a_request_without_a_session_is_refused(console: LiveServer, path: str) -> None:
    assert Browser(console).request("GET", f"/console/api/{path}").status == 401


def test_a_crd_that_is_not_there_is_not_found(browser: Browser) -> None:
    for what in ("versions", "fields", "objects/default/a"):
        answer = browser.request("GET", f"/console/api/crds/x.example.com/{what}")
        assert answer.status == 404
        assert answer.json["kind"] == "Status"
