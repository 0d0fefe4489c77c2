"""A webhook that misbehaves: fault × verb × failure policy. Nobody else notices, nothing is half
written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.admission.support import asked
from tests.rest.support import APPLY, Collection
from tests.support.admission import AdmissionHook, Says, adding, allowing, patching
from tests.support.server import Answer, LiveServer
from tests.support.webhook import PATIENCE


def hang(request: Object) -> Object:
    """Longer than the webhook's second, shorter than the test."""
    threading.Event().wait(1.5)
    return allowing()


def lie(request: Object) -> Object:
    return allowing(uid="somebody else's")


FAULTS: dict[str, Says] = {
    "hang": hang,
    "lie": lie,
    "half an answer": lambda request: "truncated",
    "half JSON": lambda request: b'{"kind":"AdmissionReview","response":{',
    "no HTTP": lambda request: "not_http",
    "reset": lambda request: "reset",
    "bomb": lambda request: "bomb",
    "deep": lambda request: b"[" * 5000,
    "server error": lambda request: "http_500",
    "redirect": lambda request: "redirect",
    "empty": lambda request: "empty",
    "a patch of text": lambda request: allowing(patchType="JSONPatch", patch="aGVsbG8="),
}
"""Calls that failed: these the failure policy is about."""

BREAKING: dict[str, Says] = {
    "does not apply": lambda request: patching({"op": "remove", "path": "/nope"}),
    "no object any more": lambda request: patching({"op": "replace", "path": "", "value": 3}),
    "no metadata": lambda request: patching({"op": "remove", "path": "/metadata"}),
    "metadata is a list": lambda request: patching(adding("/metadata", [])),
    "wrong type": lambda request: patching(adding("/spec", "text")),
    "another namespace": lambda request: patching(adding("/metadata/namespace", "other")),
    "another kind": lambda request: patching(adding("/kind", "Gadget")),
    "doubles for ever": lambda request: patching(
        adding("/spec/m", {"k": "x" * 1000}),
        *[{"op": "copy", "from": "/spec", "path": f"/spec/m{at}"} for at in range(40)],
    ),
}
"""Patches that break the object: refused whatever the policy is."""

Act = Callable[[Collection, Object], Answer]
VERBS: dict[str, Act] = {
    "create": lambda widgets, old: widgets.request("POST", "", widgets.obj("new", spec={})),
    "update": lambda widgets, old: widgets.put({**old, "spec": {"a": "y"}}),
    "patch": lambda widgets, old: widgets.patch("old", {"spec": {"a": "y"}}),
    "apply": lambda widgets, old: widgets.patch(
        "old", widgets.obj("old", spec={"a": "y"}), APPLY, "?fieldManager=m&force=true"
    ),
    "status": lambda widgets, old: widgets.patch("old", {"status": {"s": "y"}}, sub="/status"),
    "scale": lambda widgets, old: widgets.patch("old", {"spec": {"replicas": 4}}, sub="/scale"),
    "delete": lambda widgets, old: widgets.delete("old"),
}


@pytest.fixture
def old(place: LiveServer, widgets: Collection) -> Object:
    widgets.request("DELETE")
    return widgets.create("old", spec={"a": "x", "replicas": 1})


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "hang"])
def test_a_failed_call_refuses_or_is_passed_over_and_nothing_is_half_done(
    place: LiveServer,
    widgets: Collection,
    hook: AdmissionHook,
    old: Object,
    fault: str,
    verb: str,
) -> None:
    hook.says["/v"] = FAULTS[fault]
    kind = "Mutating" if fault == "a patch of text" else "Validating"
    with asked(place, hook, kind):
        refused = VERBS[verb](widgets, old)
        assert widgets.get("old") == old
        assert widgets.request("GET", "/new").status == 404
    with asked(place, hook, kind, failurePolicy="Ignore"):
        passed = VERBS[verb](widgets, old)

    assert refused.status == 500
    assert refused.json["message"].startswith(
        'Internal error occurred: failed calling webhook "v.ref.io": '
    )
    assert passed.status in (200, 201), passed.text


@pytest.mark.parametrize("verb", ["create", "patch", "delete"])
@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_a_webhook_that_hangs_is_given_up_when_its_time_is_up(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, old: Object, kind: str, verb: str
) -> None:
    hook.says["/v"] = hang
    with asked(place, hook, kind, timeoutSeconds=1):
        answer = VERBS[verb](widgets, old)

    assert answer.status == 500
    assert f"127.0.0.1:{hook.port}/v?timeout=1s" in answer.json["message"]
    assert answer.json["message"].endswith("context deadline exceeded")
    assert widgets.get("old") == old


@pytest.mark.parametrize("verb", [name for name in VERBS if name not in ("delete", "scale")])
@pytest.mark.parametrize("fault", BREAKING)
def test_a_patch_that_breaks_the_object_is_never_stored(
    place: LiveServer,
    widgets: Collection,
    hook: AdmissionHook,
    old: Object,
    fault: str,
    verb: str,
) -> None:
    hook.says["/v"] = BREAKING[fault]
    with asked(place, hook, "Mutating", failurePolicy="Ignore"):
        answer = VERBS[verb](widgets, old)

    harmless = verb == "status" and fault in ("wrong type", "no metadata", "metadata is a list")
    if harmless:
        assert answer.status in (200, 422), "a status write takes nothing but the status"
    else:
        assert answer.status in (400, 422, 500), answer.text
    now = widgets.get("old")
    assert now["spec"] == old["spec"]
    assert now["metadata"]["uid"] == old["metadata"]["uid"]
    assert widgets.request("GET", "/new").status == 404


def test_other_requests_are_served_while_a_webhook_hangs(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, old: Object
) -> None:
    answers: list[Answer] = []

    def write() -> None:
        answers.append(widgets.patch("old", {"spec": {"a": "late"}}))

    with asked(place, hook, "Validating"):
        hook.pause()
        writer = threading.Thread(target=write)
        writer.start()
        hook.wait_for_calls(1)
        assert widgets.get("old") == old
        body = {"metadata": {"name": "meanwhile"}, "data": {"k": "v"}}
        answer = place.request("POST", "/api/v1/namespaces/default/configmaps", body)
        hook.resume()  # only now: neither the read nor the other write waited for the webhook
        writer.join(PATIENCE)

    assert answer.status == 201
    assert answers[0].status == 200


def test_a_request_whose_time_is_up_stores_nothing(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, old: Object
) -> None:
    hook.says["/v"] = hang
    with asked(place, hook, "Validating", failurePolicy="Ignore"):
        answer = widgets.request("POST", "?timeout=1s", widgets.obj("late"))

    assert answer.status == 504
    assert answer.json["reason"] == "Timeout"
    assert widgets.request("GET", "/late").status == 404


def test_a_client_that_leaves_takes_its_call_along(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, old: Object
) -> None:
    with asked(place, hook, "Validating"):
        hook.pause()
        connection = place.connection()
        headers: dict[str, Any] = {
            "Authorization": f"Bearer {place.token}",
            "Content-Type": "application/json",
        }
        connection.request("DELETE", f"{widgets.path}/old", headers=headers)
        hook.wait_for_calls(1)
        connection.close()
        assert place.request("GET", "/livez").status == 200, "so it has noticed"
        hook.resume()
        assert widgets.request("POST", "", widgets.obj("after")).status == 201

    assert widgets.get("old") == old


def test_an_object_made_huge_is_refused_and_a_large_one_is_worked_on_elsewhere(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, old: Object
) -> None:
    large = {f"k{at}": "x" * 100 for at in range(5000)}
    hook.says["/v"] = lambda request: patching(adding("/spec/m", large))
    with asked(place, hook, "Mutating"):
        fine = widgets.request("POST", "", widgets.obj("large", spec={}))
        hook.says["/v"] = lambda request: patching(adding("/spec/a", "x" * (4 << 20)))
        huge = widgets.request("POST", "", widgets.obj("huge", spec={}))

    assert fine.status == 201
    assert len(widgets.get("large")["spec"]["m"]) == 5000
    assert huge.status == 500
    assert "the patched object is larger than" in huge.json["message"]
    held = [one for one in place.running.machinery.watchdog.held if one.seconds > 1.0]
    assert held == []
