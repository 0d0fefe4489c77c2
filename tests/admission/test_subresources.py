"""What is asked of built-in objects: evictions, bindings, connections, reviews, tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.support.admission import AdmissionHook, configuration, configured, denying
from tests.support.server import Answer, LiveServer

PODS = "/api/v1/namespaces/default/pods"
EVERYTHING = {
    "operations": ["*"],
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "resources": ["*/*"],
}


@contextmanager
def watched(place: LiveServer, hook: AdmissionHook) -> Iterator[None]:
    webhook = hook.webhook("v.ref.io", "/v", rules=[EVERYTHING])
    with configured(place, configuration("Validating", webhook)):
        yield


def pod(place: LiveServer, name: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    assert place.request("POST", PODS, body).status == 201


def test_a_pod_is_shown_with_its_defaults(place: LiveServer, hook: AdmissionHook) -> None:
    with watched(place, hook):
        pod(place, "shown")

    (seen,) = hook.asked()
    assert seen["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert seen["object"]["spec"]["restartPolicy"] == "Always"


def test_an_eviction_is_reviewed_as_a_creation_and_its_deletion_is_not_reviewed(
    place: LiveServer, hook: AdmissionHook
) -> None:
    pod(place, "evicted")
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "evicted", "namespace": "default"},
        "deleteOptions": {"gracePeriodSeconds": 0},
    }
    with watched(place, hook):
        assert place.request("POST", f"{PODS}/evicted/eviction", eviction).status == 201

    (seen,) = hook.asked()
    assert seen["operation"] == "CREATE"
    assert seen["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert seen["resource"]["resource"] == "pods"
    assert seen["subResource"] == "eviction"
    assert seen["name"] == "evicted"
    assert seen["options"]["kind"] == "CreateOptions"
    assert seen["object"]["deleteOptions"] == {"gracePeriodSeconds": 0}


@pytest.mark.parametrize(
    ("below", "api_version", "kind"),
    [("foreign/eviction", "policy/v1", "Eviction"), ("foreign/binding", "v1", "Binding")],
)
def test_subresource_writes_of_a_pod_have_the_pods_namespace(
    place: LiveServer, below: str, api_version: str, kind: str
) -> None:
    metadata = {"name": "foreign", "namespace": "kube-system"}
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata}

    answer = place.request("POST", f"{PODS}/{below}", body)

    assert answer.status == 400, answer.text
    assert "does not match the namespace sent on the request" in answer.text


def test_a_binding_is_a_creation(place: LiveServer, hook: AdmissionHook) -> None:
    pod(place, "bound")
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "bound"},
        "target": {"kind": "Node", "name": "n1"},
    }
    with watched(place, hook):
        assert place.request("POST", f"{PODS}/bound/binding", binding).status == 201

    (seen,) = hook.asked()
    assert (seen["operation"], seen["subResource"]) == ("CREATE", "binding")
    assert seen["kind"]["kind"] == "Binding"
    assert seen["object"]["target"]["name"] == "n1"


def test_a_connection_shows_how_it_is_wanted(place: LiveServer, hook: AdmissionHook) -> None:
    pod(place, "reached")
    hook.says["/v"] = lambda request: denying("not here", code=403)
    with watched(place, hook):
        path = f"{PODS}/reached/exec?command=ls&command=-l&stdout=true&container=c"
        answer = place.request("POST", path)

    assert answer.status == 403
    (seen,) = hook.asked()
    assert seen["operation"] == "CONNECT"
    assert seen["options"] is None
    assert seen["oldObject"] is None
    assert seen["object"] == {
        "kind": "PodExecOptions",
        "apiVersion": "v1",
        "stdout": True,
        "container": "c",
        "command": ["ls", "-l"],
    }


def review(place: LiveServer) -> Answer:
    body: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return place.request("POST", path, body)


def token(place: LiveServer) -> Answer:
    account: dict[str, Any] = {"metadata": {"name": "robot"}}
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    place.request("POST", accounts, account)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return place.request("POST", f"{accounts}/robot/token", body)


@pytest.mark.parametrize(
    ("ask", "kind", "subresource"),
    [(review, "SelfSubjectAccessReview", None), (token, "TokenRequest", "token")],
)
def test_questions_are_creations(
    place: LiveServer, hook: AdmissionHook, ask: Any, kind: str, subresource: str | None
) -> None:
    with watched(place, hook):
        answer = ask(place)

    assert answer.status == 201, answer.text
    seen = hook.asked()[-1]
    assert seen["operation"] == "CREATE"
    assert seen["kind"]["kind"] == kind
    assert seen.get("subResource") == subresource


def test_webhooks_are_called_for_crds(place: LiveServer, hook: AdmissionHook) -> None:
    hook.says["/v"] = lambda request: denying("no CRDs on Mondays")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.ref.io"
    with watched(place, hook):
        label = {"metadata": {"labels": {"a": "b"}}}
        answer = place.request("PATCH", path, label, content_type="application/merge-patch+json")

    assert answer.json["message"].endswith("no CRDs on Mondays")
    assert hook.asked()[0]["kind"]["kind"] == "CustomResourceDefinition"
