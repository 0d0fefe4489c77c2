"""Fault × verb: whatever a webhook does, the client is told what is wrong, and nobody else is hurt.

Two verbs do not need the webhook and so cannot fail by it: deleting an object that has no
finalizers, and anything at the version objects are stored in.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import trustme

from instar.base.json_values import Object
from tests.support.server import Answer, LiveServer
from tests.support.webhook import Webhook
from tests.webhooks.conftest import IMPATIENT_GROUPS
from tests.webhooks.support import MERGE, Watching, Widgets, convert

HOLD = ["example.com/hold"]


class Fault(NamedTuple):
    """``told`` is upstream's text for it, as part of the message."""

    told: str
    name: str | None = None
    setting: str = "answering"


FAULTS = {
    "connection refused": Fault("connect: connection refused", setting="gone"),
    "not trusted": Fault("x509: certificate signed by unknown authority", setting="untrusted"),
    "wrong name": Fault("x509: certificate is valid for", setting="misnamed"),
    "4xx": Fault("the server could not find the requested resource", "http_404"),
    "5xx": Fault('an error on the server ("boom") has prevented', "http_500"),
    "time-out": Fault("context deadline exceeded", "stalled"),
    "not JSON": Fault("couldn't get version/kind; json parse error", "not_json"),
    "wrong content": Fault("got /, Kind=", "no_review_kind"),
    "wrong uid": Fault('expected response.uid="', "wrong_uid"),
    "wrong object": Fault("must have the same name", "wrong_name"),
    "too few objects": Fault("returned 0 objects, expected", "no_objects"),
    "Failed": Fault("failed: cannot be done", "failed"),
    "Failed without a message": Fault("status was 'Failure', not 'Success'", "failed_silently"),
    "truncated": Fault("unexpected error when reading response body", "truncated"),
    "endless": Fault("the response body is larger than 67108864 bytes", "endless"),
    "redirect": Fault("the server responded with the status code 307", "redirect"),
}


def _send(widgets: Widgets, method: str, name: str, body: object = None) -> Answer:
    media = MERGE if method == "PATCH" else "application/json"
    return widgets.server.request(method, widgets.path("v2", name), body, content_type=media)


def _scale(widgets: Widgets) -> Object:
    metadata = {"name": "a", "namespace": "default"}
    kind = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    return {**kind, "metadata": metadata, "spec": {"replicas": 3}}


def _update(widgets: Widgets, name: str) -> Answer:
    revision = widgets.get("v1", "a").json["metadata"]["resourceVersion"]
    body = widgets.widget("v2", "a", resourceVersion=revision, finalizers=HOLD)
    return _send(widgets, "PUT", name, {**body, "status": {"phase": "x"}})


VERBS: dict[str, Callable[[Widgets], Answer]] = {
    "get": lambda w: _send(w, "GET", "a"),
    "list": lambda w: _send(w, "GET", ""),
    "create": lambda w: _send(w, "POST", "", w.widget("v2", "new")),
    "update": lambda w: _update(w, "a"),
    "patch": lambda w: _send(w, "PATCH", "a", {"spec": {"replicas": 2}}),
    "delete": lambda w: _send(w, "DELETE", "a"),
    "deletecollection": lambda w: _send(w, "DELETE", ""),
    "get status": lambda w: _send(w, "GET", "a/status"),
    "update status": lambda w: _update(w, "a/status"),
    "patch status": lambda w: _send(w, "PATCH", "a/status", {"status": {"phase": "x"}}),
    "get scale": lambda w: _send(w, "GET", "a/scale"),
    "update scale": lambda w: _send(w, "PUT", "a/scale", _scale(w)),
    "patch scale": lambda w: _send(w, "PATCH", "a/scale", {"spec": {"replicas": 4}}),
}


class Broken(NamedTuple):
    widgets: Widgets
    address: str


@pytest.fixture(scope="module", params=FAULTS)
def fault(request: pytest.FixtureRequest) -> Fault:
    return FAULTS[request.param]


@pytest.fixture(scope="module")
def broken(fault: Fault, impatient_server: LiveServer) -> Iterator[Broken]:
    """Two stored widgets whose webhook has one fault."""
    hosts = ["elsewhere.example.com"] if fault.setting == "misnamed" else ["127.0.0.1"]
    with Webhook(convert, hosts=hosts) as webhook:
        webhook.fault = fault.name
        conversion = webhook.conversion()
        if fault.setting == "untrusted":
            stranger = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
            conversion["webhook"]["clientConfig"]["caBundle"] = stranger
        group = IMPATIENT_GROUPS[0] if fault.name == "stalled" else ""
        widgets = Widgets(impatient_server, conversion, group=group)
        widgets.create("v1", "a", finalizers=HOLD)
        widgets.create("v1", "b", finalizers=HOLD)
        if fault.setting == "gone":
            webhook.stop()
        yield Broken(widgets, webhook.url)


def _told(status: Object) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for cause in status["details"]["causes"]:
        told.setdefault(cause.get("reason", ""), []).append(cause["message"])
    return told


def _check(status: Object, broken: Broken, fault: Fault, *, from_v2: bool) -> None:
    group = broken.widgets.group
    told = _told(status)
    versions = (f"{group}/v2", f"{group}/v1") if from_v2 else (f"{group}/v1", f"{group}/v2")
    assert fault.told in status["message"], status["message"]
    assert f"conversion webhook for {versions[0]}, Kind=Widget" in status["message"]
    assert told["CustomResourceDefinition"] == [broken.widgets.name]
    assert (told["FromVersion"], told["ToVersion"]) == ([versions[0]], [versions[1]])
    assert told["Webhook"] == [broken.address]
    assert told["Cause"][0] in status["message"]
    assert told["Object"][0].startswith("default/")


@pytest.mark.parametrize("verb", VERBS)
def test_the_client_gets_the_failed_conversion_and_its_reason(
    verb: str, fault: Fault, broken: Broken
) -> None:
    before = broken.widgets.get("v1").json["items"]

    answer = VERBS[verb](broken.widgets)

    assert answer.status == 500, answer.text
    assert "reason" not in answer.json
    _check(answer.json, broken, fault, from_v2=verb == "create")
    assert broken.widgets.get("v1").json["items"] == before


def test_a_watch_ends_with_an_error_event(fault: Fault, broken: Broken) -> None:
    widgets = broken.widgets
    revision = widgets.get("v1").json["metadata"]["resourceVersion"]

    opened = Watching(widgets.server, widgets.path("v2"))
    live = Watching(widgets.server, widgets.path("v2") + f"?resourceVersion={revision}")
    widgets.patch("v1", "a", {"spec": {"port": int(revision)}})

    for watch in (opened, live):
        last = watch.wait_for_end()[-1]
        watch.close()
        assert watch.status == 200
        assert last["type"] == "ERROR"
        status = last["object"]
        assert (status["reason"], status["code"]) == ("InternalError", 500)
        assert status["message"].startswith("Internal error occurred: conversion webhook for ")
        _check(status, broken, fault, from_v2=False)


@pytest.fixture(scope="module")
def neighbour(impatient_server: LiveServer) -> Iterator[Widgets]:
    with Webhook(convert) as healthy:
        yield Widgets(impatient_server, healthy.conversion())


def test_requests_without_a_webhook_work_and_the_server_stays_healthy(
    fault: Fault, broken: Broken, neighbour: Widgets
) -> None:
    widgets = broken.widgets
    neighbour.create("v1", widgets.group, port=4)
    widgets.create("v1", "free")

    assert widgets.patch("v1", "a", {"spec": {"replicas": 5}}).status == 200
    assert widgets.server.request("DELETE", widgets.path("v1", "free")).status == 200
    assert neighbour.get("v2", widgets.group).json["spec"]["hostPort"] == "h:4"
    assert widgets.server.request("GET", "/readyz").status == 200
