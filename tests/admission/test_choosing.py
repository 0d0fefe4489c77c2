"""Who is asked: selectors, conditions, versions; at the same time, or not at all."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.rest.support import Collection
from tests.support import crds
from tests.support.admission import (
    AdmissionHook,
    adding,
    allowing,
    configuration,
    configured,
    denying,
    patching,
)
from tests.support.server import LiveServer
from tests.support.waiting import eventually
from tests.support.webhook import PATIENCE, Webhook

LABELLED = {"matchLabels": {"pick": "me"}}


def namespace(place: LiveServer, name: str, **labels: str) -> None:
    body = {"metadata": {"name": name, "labels": labels}}
    assert place.request("POST", "/api/v1/namespaces", body).status == 201


def test_a_namespace_is_chosen_by_its_labels(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    namespace(place, "picked", pick="me")
    webhook = hook.webhook("v.ref.io", "/v", namespaceSelector=LABELLED)
    with configured(place, configuration("Validating", webhook)):
        widgets.create("a")
        widgets.at(namespace="picked").create("a")

    assert [seen["namespace"] for seen in hook.asked()] == ["picked"]


def test_a_namespace_itself_is_judged_by_what_it_becomes_and_a_deleted_one_by_what_it_was(
    place: LiveServer, hook: AdmissionHook
) -> None:
    rule = {
        "operations": ["*"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["namespaces"],
        "scope": "Cluster",
    }
    webhook = hook.webhook("v.ref.io", "/v", namespaceSelector=LABELLED, rules=[rule])
    path, merge = "/api/v1/namespaces/judged", "application/merge-patch+json"
    with configured(place, configuration("Validating", webhook)):
        namespace(place, "judged")
        label = {"metadata": {"labels": {"pick": "me"}}}
        place.request("PATCH", path, label, content_type=merge)
        place.request("DELETE", path)

    assert [seen["operation"] for seen in hook.asked()] == ["UPDATE", "DELETE"]


def test_an_object_is_chosen_by_what_it_is_or_was(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    webhook = hook.webhook("v.ref.io", "/v", objectSelector=LABELLED)
    with configured(place, configuration("Validating", webhook)):
        widgets.create("sel")
        widgets.patch("sel", {"metadata": {"labels": {"pick": "me"}}})
        widgets.patch("sel", {"spec": {"replicas": 1}})
        widgets.patch("sel", {"spec": {"replicas": 2}}, sub="/scale")
        widgets.patch("sel", {"metadata": {"labels": {"pick": None}}})
        widgets.patch("sel", {"spec": {"a": "free"}})

    assert [seen["operation"] for seen in hook.asked()] == ["UPDATE"] * 3
    assert all("subResource" not in seen for seen in hook.asked())


def test_labels_of_the_mutating_phase_are_those_after_the_former_patches(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/a"] = lambda request: patching(adding("/metadata/labels", {"pick": "me"}))
    webhooks = (
        hook.webhook("a.ref.io", "/a"),
        hook.webhook("b.ref.io", "/b", objectSelector=LABELLED),
    )
    with configured(place, configuration("Mutating", *webhooks)):
        widgets.create("labelled")

    assert hook.order() == ["/a", "/b"]


# Conditions ---------------------------------------------------------------------------------------


def conditions(*expressions: str) -> Object:
    listed = [{"name": f"c{at}", "expression": text} for at, text in enumerate(expressions)]
    return {"matchConditions": listed}


def test_conditions_choose_by_the_request_and_the_object_at_the_version_sent(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    rule = {
        "operations": ["*"],
        "apiGroups": ["ref.io"],
        "apiVersions": ["v1"],
        "resources": ["widgets"],
    }
    wanted = conditions(
        "object.apiVersion == 'ref.io/v1'",
        "request.requestKind.version == 'v2'",
        "request.userInfo.username == 'kubernetes-admin'",
        "authorizer.requestResource.check('create').allowed()",
        "object.spec.a == 'yes'",
    )
    webhook = hook.webhook("v.ref.io", "/v", rules=[rule], **wanted)
    two = widgets.at(version="v2")
    with configured(place, configuration("Validating", webhook)):
        two.create("no", spec={"a": "no"})
        two.create("yes", spec={"a": "yes"})

    assert [seen["name"] for seen in hook.asked()] == ["yes"]


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_conditions_that_fail_refuse_or_skip_by_the_failure_policy(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, kind: str
) -> None:
    failing = conditions('object.spec.nope == "a"')
    with configured(place, configuration(kind, hook.webhook("v.ref.io", "/v", **failing))):
        refused = widgets.request("POST", "", widgets.obj("cond", spec={}))
    open_minded = hook.webhook("v.ref.io", "/v", failurePolicy="Ignore", **failing)
    with configured(place, configuration(kind, open_minded)):
        passed = widgets.request("POST", "", widgets.obj(f"cond-{kind.lower()}", spec={}))

    text = "expression 'object.spec.nope == \"a\"' resulted in error: no such key: nope"
    assert refused.status == 403
    assert refused.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'widgets.ref.io "cond" is forbidden: {text}',
        "reason": "Forbidden",
        "details": {"name": "cond", "group": "ref.io", "kind": "widgets"},
        "code": 403,
    }
    assert passed.status == 201
    assert hook.calls == []


def test_several_failing_conditions_are_reported_in_a_list(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    failing = conditions("object.spec.x == 1", "object.spec.y == 1")
    with configured(place, configuration("Validating", hook.webhook("v.ref.io", "/v", **failing))):
        answer = widgets.request("POST", "", widgets.obj("several", spec={}))

    assert answer.json["message"].endswith(
        "is forbidden: [expression 'object.spec.x == 1' resulted in error: no such key: x, "
        "expression 'object.spec.y == 1' resulted in error: no such key: y]"
    )


# At the same time ---------------------------------------------------------------------------------


def test_validating_webhooks_are_called_in_parallel_and_all_are_awaited(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    together = threading.Barrier(3)

    def meet(message: str) -> Any:
        def answer(request: Object) -> Object:
            together.wait(PATIENCE)
            return allowing(warnings=[message])

        return answer

    webhooks = []
    for at in range(3):
        hook.says[f"/v{at}"] = meet(f"from {at}")
        webhooks.append(hook.webhook(f"v{at}.ref.io", f"/v{at}"))
    with configured(place, configuration("Validating", *webhooks)):
        answer = widgets.request("POST", "", widgets.obj("together"))

    assert answer.status == 201
    assert sorted(answer.warnings) == [f'299 - "from {at}"' for at in range(3)]


def test_the_first_denial_is_reported(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    first = threading.Event()

    def quick(request: Object) -> Object:
        threading.Timer(0.2, first.set).start()
        return denying("quick")

    def slow(request: Object) -> Object:
        first.wait(PATIENCE)
        return denying("slow")

    hook.says |= {"/a": slow, "/b": quick}
    webhooks = hook.webhook("a.ref.io", "/a"), hook.webhook("b.ref.io", "/b")
    with configured(place, configuration("Validating", *webhooks)):
        answer = widgets.request("POST", "", widgets.obj("first"))

    assert answer.json["message"].endswith("denied the request: quick")


# Conversion ---------------------------------------------------------------------------------------


def converted_crd(converter: Webhook, plural: str, kind: str) -> Object:
    schema = crds.fields(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    return crds.crd(
        crds.version("v1", schema),
        crds.version("v2", schema),
        group="ref.io",
        plural=plural,
        kind=kind,
        conversion=converter.conversion(),
    )


def only(version: str, plural: str) -> Object:
    rule = {
        "operations": ["*"],
        "apiGroups": ["ref.io"],
        "apiVersions": [version],
        "resources": [plural],
    }
    return {"rules": [rule]}


def test_objects_are_converted_once_for_all_webhooks_at_a_version(
    place: LiveServer, hook: AdmissionHook
) -> None:
    with Webhook() as converter:
        place.create_crd(converted_crd(converter, "convs", "Conv"))
        convs = Collection(place, "ref.io", "convs", "Conv")
        old = convs.create("c", spec={"x": 1})
        converter.reset()
        webhooks = [hook.webhook(f"v{at}.ref.io", "/v", **only("v2", "convs")) for at in range(3)]
        with configured(place, configuration("Validating", *webhooks)):
            assert convs.put({**old, "spec": {"x": 2}}).status == 200

    assert len(hook.asked()) == 3
    for seen in hook.asked():
        assert seen["object"]["apiVersion"] == seen["oldObject"]["apiVersion"] == "ref.io/v2"
        assert (seen["oldObject"]["spec"], seen["object"]["spec"]) == ({"x": 1}, {"x": 2})
    assert converter.objects == 2


@pytest.mark.parametrize(("kind", "times"), [("Validating", 1), ("Mutating", 2)])
def test_a_conversion_that_fails_is_nothing_a_failure_policy_passes_over(
    place: LiveServer, hook: AdmissionHook, kind: str, times: int
) -> None:
    def refuse(obj: Object, api_version: str) -> Object:
        raise ValueError("nope")

    plural = f"{kind.lower()}s"
    with Webhook(refuse) as converter:
        place.create_crd(converted_crd(converter, plural, kind))
        things = Collection(place, "ref.io", plural, kind)
        webhook = hook.webhook("v.ref.io", "/v", failurePolicy="Ignore", **only("v2", plural))
        with configured(place, configuration(kind, webhook)):
            answer = things.request("POST", "", things.obj("c", spec={"x": 1}))

    assert answer.status == 500
    prefix = "Internal error occurred: " * times
    assert answer.json["message"] == (
        f"{prefix}conversion webhook for ref.io/v1, Kind={kind} failed: nope"
    )
    assert hook.calls == []


# Configurations change ----------------------------------------------------------------------------


def test_a_change_of_the_configuration_takes_effect(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/v"] = lambda request: denying("closed")
    document = configuration("Validating", hook.webhook("v.ref.io", "/v"))
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/test"
    with configured(place, document):
        assert widgets.request("POST", "", widgets.obj("cfg")).status == 400
        rules = [{"op": "replace", "path": "/webhooks/0/rules/0/operations", "value": ["DELETE"]}]
        kind = "application/json-patch+json"
        assert place.request("PATCH", path, rules, content_type=kind).status == 200
        eventually(lambda: widgets.request("POST", "?dryRun=All", widgets.obj("cfg")).status == 201)

    assert widgets.request("POST", "", widgets.obj("cfg")).status == 201
