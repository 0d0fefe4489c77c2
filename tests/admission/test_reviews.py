"""What a webhook is asked: the reference's table of verbs, over a real TLS webhook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.rest.support import APPLY, JSON_PATCH, Collection
from tests.support.admission import (
    AdmissionHook,
    adding,
    allowing,
    configuration,
    configured,
    patching,
)
from tests.support.server import LiveServer


@contextmanager
def watched(place: LiveServer, hook: AdmissionHook, **changes: Any) -> Iterator[None]:
    """Both kinds of webhooks on everything of ref.io."""
    mutating = configuration("Mutating", hook.webhook("m.ref.io", "/m", **changes))
    validating = configuration("Validating", hook.webhook("v.ref.io", "/v", **changes))
    with configured(place, mutating, validating):
        yield


WIDGET = {"group": "ref.io", "version": "v1", "kind": "Widget"}
WIDGETS = {"group": "ref.io", "version": "v1", "resource": "widgets"}


def test_a_create_is_shown_before_and_after_the_server_has_prepared_it(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    with watched(place, hook):
        body = widgets.obj("c1", spec={"a": "x"}, metadata={"labels": {"l": "1"}})
        answer = widgets.request("POST", "?fieldManager=me&fieldValidation=Strict", body)

    assert answer.status == 201
    (early,), (late,) = hook.asked("/m"), hook.asked("/v")
    assert list(early) == [
        *("uid", "kind", "resource", "requestKind", "requestResource", "name", "namespace"),
        *("operation", "userInfo", "object", "oldObject", "dryRun", "options"),
    ]
    assert early["kind"] == early["requestKind"] == WIDGET
    assert early["resource"] == early["requestResource"] == WIDGETS
    assert (early["name"], early["namespace"]) == ("c1", "default")
    assert early["operation"] == "CREATE"
    assert early["userInfo"] == {
        "username": "kubernetes-admin",
        "groups": ["system:masters", "system:authenticated"],
    }
    assert early["options"] == {
        "kind": "CreateOptions",
        "apiVersion": "meta.k8s.io/v1",
        "fieldManager": "me",
        "fieldValidation": "Strict",
    }
    assert early["oldObject"] is None
    assert early["dryRun"] is False
    seen = early["object"]
    assert seen["spec"] == {"a": "x", "d": "one"}
    assert seen["metadata"]["namespace"] == "default"
    assert seen["metadata"]["managedFields"][0]["manager"] == "me"
    assert not {"uid", "creationTimestamp", "generation"} & seen["metadata"].keys()
    after = late["object"]["metadata"]
    assert after["generation"] == 1
    assert after["uid"]
    assert after["creationTimestamp"]
    assert "resourceVersion" not in after
    assert early["uid"] != late["uid"]


def test_a_generated_name_is_known_to_validating_webhooks_alone(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    with watched(place, hook):
        answer = widgets.request("POST", "", widgets.obj(metadata={"generateName": "gen-"}))

    (early,), (late,) = hook.asked("/m"), hook.asked("/v")
    assert "name" not in early
    assert late["name"] == answer.json["metadata"]["name"] == late["object"]["metadata"]["name"]


def test_an_update_shows_both_objects_and_the_generation_when_it_is_known(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    old = widgets.create("u1", spec={"a": "x"})
    with watched(place, hook):
        assert widgets.put({**old, "spec": {"a": "y"}}).status == 200

    (early,), (late,) = hook.asked("/m"), hook.asked("/v")
    assert early["operation"] == "UPDATE"
    assert early["oldObject"] == old
    assert early["object"]["spec"] == {"a": "y", "d": "one"}
    assert early["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert early["object"]["metadata"]["generation"] == 1
    assert late["object"]["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/merge-patch+json", {"spec": {"a": "p"}}),
        (JSON_PATCH, [{"op": "replace", "path": "/spec/a", "value": "p"}]),
    ],
)
def test_a_patch_is_an_update_with_the_whole_object(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, kind: str, body: Any
) -> None:
    name = "p1" if kind == JSON_PATCH else "p2"
    widgets.create(name, spec={"a": "x"})
    with watched(place, hook):
        assert widgets.patch(name, body, kind).status == 200

    (seen,) = hook.asked("/v")
    assert seen["operation"] == "UPDATE"
    assert seen["options"]["kind"] == "UpdateOptions"
    assert seen["object"]["spec"] == {"a": "p", "d": "one"}
    assert seen["oldObject"]["spec"] == {"a": "x", "d": "one"}


def test_an_apply_creates_or_updates_and_does_not_show_force(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    applied = widgets.obj("ap1", spec={"a": "x"})
    with watched(place, hook):
        for value in ("x", "y"):
            applied["spec"]["a"] = value
            answer = widgets.patch("ap1", applied, APPLY, "?fieldManager=me&force=true")
            assert answer.status in (200, 201), answer.text

    created, updated = hook.asked("/v")
    assert created["operation"] == "CREATE"
    assert created["oldObject"] is None
    assert created["name"] == "ap1"
    options = {"apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
    assert created["options"] == {"kind": "CreateOptions", **options}
    assert updated["operation"] == "UPDATE"
    assert updated["options"] == {"kind": "UpdateOptions", **options}


def test_a_delete_review_shows_the_object_and_the_options(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    old = widgets.create("d1", spec={"a": "x"})
    how = {"propagationPolicy": "Background", "preconditions": {"uid": old["metadata"]["uid"]}}
    with watched(place, hook):
        assert widgets.delete("d1", body=how).status == 200

    for seen in hook.asked():
        assert seen["operation"] == "DELETE"
        assert seen["name"] == "d1"
        assert seen["object"] is None
        assert seen["oldObject"] == old
        expected = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **how}
        assert seen["options"] == expected


def test_a_delete_of_a_missing_object_calls_no_webhook(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    with watched(place, hook):
        assert widgets.delete("nobody").status == 404
        assert widgets.patch("nobody", {"spec": {}}).status == 404

    assert hook.calls == []


def test_a_collections_deletion_is_a_review_per_object_without_a_name(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    for name in ("dc0", "dc1"):
        widgets.create(name, metadata={"labels": {"dc": "1"}})
    with watched(place, hook):
        answer = widgets.request("DELETE", "?labelSelector=dc%3D1")

    assert answer.status == 200
    seen = hook.asked("/v")
    assert ["name" in each for each in seen] == [False, False]
    assert [each["oldObject"]["metadata"]["name"] for each in seen] == ["dc0", "dc1"]


def test_a_collections_deletion_ends_at_the_first_refusal(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    for name in ("de0", "de1", "de2"):
        widgets.create(name, metadata={"labels": {"de": "1"}})

    def judge(request: Object) -> Object:
        return allowing(allowed=request["oldObject"]["metadata"]["name"] != "de1")

    hook.says["/v"] = judge
    with watched(place, hook):
        answer = widgets.request("DELETE", "?labelSelector=de%3D1")

    assert answer.status == 400
    left = widgets.request("GET", "?labelSelector=de%3D1").json["items"]
    assert [each["metadata"]["name"] for each in left] == ["de1", "de2"]


def test_a_status_write_shows_the_whole_object(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    widgets.create("s1", spec={"a": "x"})
    with watched(place, hook):
        assert widgets.patch("s1", {"status": {"s": "on"}}, sub="/status").status == 200

    (seen,) = hook.asked("/v")
    assert seen["subResource"] == seen["requestSubResource"] == "status"
    assert seen["kind"] == WIDGET
    assert seen["object"]["spec"] == {"a": "x", "d": "one"}
    assert seen["object"]["status"] == {"s": "on"}


def test_a_scale_is_shown_as_a_scale_and_may_be_changed(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    widgets.create("sc1", spec={"a": "x"})
    hook.says["/m"] = lambda request: patching(adding("/spec/replicas", 7))
    with watched(place, hook):
        answer = widgets.patch("sc1", {"spec": {"replicas": 3}}, sub="/scale")

    assert answer.status == 200, answer.text
    (early,), (late,) = hook.asked("/m"), hook.asked("/v")
    assert early["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert early["resource"] == WIDGETS
    assert early["subResource"] == "scale"
    assert early["object"]["spec"] == {"replicas": 3}
    assert early["oldObject"]["spec"] == {"replicas": -2147483648}
    assert late["object"]["spec"] == {"replicas": 7}
    assert answer.json["spec"] == {"replicas": 7}
    assert widgets.get("sc1")["spec"]["replicas"] == 7


def test_the_review_of_a_dry_run_is_marked_as_one(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    with watched(place, hook):
        answer = widgets.request("POST", "?dryRun=All", widgets.obj("dry"))

    assert answer.status == 201
    for seen in hook.asked():
        assert seen["dryRun"] is True
        assert seen["options"]["dryRun"] == ["All"]


def test_an_update_that_changes_nothing_asks_all_the_same(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    widgets.create("noop", spec={"a": "x"})
    with watched(place, hook):
        assert widgets.patch("noop", {"spec": {"a": "x"}}).status == 200

    assert hook.order() == ["/m", "/v"]


def test_an_undecodable_body_calls_no_webhook_and_an_invalid_one_only_mutating_ones(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    with watched(place, hook):
        strict = widgets.request("POST", "?fieldValidation=Strict", widgets.obj("bad", oops=1))
        invalid = widgets.request("POST", "", widgets.obj("bad", spec={"n": "text"}))

    assert (strict.status, invalid.status) == (400, 422)
    assert hook.order() == ["/m"]


def test_a_lost_race_was_shown_to_mutating_webhooks_already(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    old = widgets.create("race", spec={"a": "x"})
    widgets.patch("race", {"spec": {"a": "y"}})
    with watched(place, hook):
        assert widgets.put({**old, "spec": {"a": "z"}}).status == 409

    assert hook.order() == ["/m"]


def test_the_call_looks_like_upstreams(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    changes = {"timeoutSeconds": 5, "admissionReviewVersions": ["v9", "v1beta1", "v1"]}
    with watched(place, hook, **changes):
        assert widgets.request("POST", "", widgets.obj("call")).status == 201
        assert widgets.request("POST", "?timeout=1s", widgets.obj("call2")).status == 201

    call = hook.calls[0]
    assert call.path == "/m?timeout=5s"
    assert hook.calls[2].path == "/m?timeout=1s"
    assert call.headers["User-Agent"] == "kube-apiserver-admission"
    assert call.headers["Accept"] == "application/json, */*"
    assert call.headers["Content-Type"] == "application/json"
    assert call.review["apiVersion"] == "admission.k8s.io/v1beta1"
    assert "response" not in call.review


def test_webhook_configurations_are_sent_to_no_webhook(
    place: LiveServer, hook: AdmissionHook
) -> None:
    everything = {
        "operations": ["*"],
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "resources": ["*/*"],
    }
    with (
        watched(place, hook, rules=[everything]),
        configured(place, configuration("Validating", name="other")),
    ):
        assert place.request("POST", "/api/v1/namespaces", {"metadata": {"name": "seen"}}).status

    assert {seen["resource"]["resource"] for seen in hook.asked()} == {"namespaces"}
    assert {seen["namespace"] for seen in hook.asked()} == {"seen"}
