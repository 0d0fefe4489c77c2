"""Policies and webhooks together: who is asked before whom, and who sees whose changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from instar.base.json_values import Object
from tests.admission.policies.support import Cluster, apply, json_patch
from tests.rest.support import Collection
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


@contextmanager
def policies(place: LiveServer) -> Iterator[Cluster]:
    found = Cluster(place, "ref.io")
    try:
        yield found
    finally:
        found.clear()


def hooks(hook: AdmissionHook, **mutating: Any) -> tuple[Object, Object]:
    return (
        configuration("Mutating", hook.webhook("m.ref.io", "/m", **mutating)),
        configuration("Validating", hook.webhook("v.ref.io", "/v")),
    )


def test_mutating_policies_come_before_mutating_webhooks(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    seen: list[Any] = []

    def mutate(request: Object) -> Object:
        seen.append(request["object"]["spec"].get("a"))
        return patching(adding("/spec/a", "webhook"))

    hook.says["/m"] = mutate
    with policies(place) as cluster, configured(place, *hooks(hook)):
        cluster.mutation(apply("Object{spec: Object.spec{a: 'policy'}}"))
        cluster.bind_mutation()
        made = widgets.request("POST", "", widgets.obj("first", spec={"a": "client"})).json

    assert seen == ["policy"]
    assert made["spec"]["a"] == "webhook"


def test_validating_policies_come_before_validating_webhooks_and_after_mutations(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/m"] = lambda request: patching(adding("/spec/a", "webhook"))
    hook.says["/v"] = lambda request: denying("too late")
    with policies(place) as cluster, configured(place, *hooks(hook)):
        cluster.policy("object.spec.a == 'client'")
        cluster.bind()
        refused = widgets.request("POST", "", widgets.obj("second", spec={"a": "client"}))
        asked = [call.path for call in hook.calls]

    assert "failed expression: object.spec.a == 'client'" in refused.json["message"]
    assert not any(path.startswith("/v") for path in asked)


def test_a_policy_that_is_needed_sees_what_webhooks_changed(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/m"] = lambda request: patching(adding("/spec/n", 7))
    with policies(place) as cluster, configured(place, *hooks(hook)):
        cluster.mutation(
            json_patch(
                "has(object.spec.n) ? [JSONPatch{op: 'add', path: '/spec/a', value: 'saw ' + "
                "string(object.spec.n)}] : [JSONPatch{op: 'test', path: '/kind', value: ''}]"
            ),
            reinvocationPolicy="IfNeeded",
        )
        cluster.bind_mutation()
        made = widgets.request("POST", "", widgets.obj("third", spec={})).json

    assert made["spec"]["a"] == "saw 7"


def test_a_webhook_that_is_needed_sees_what_a_policy_changed_in_the_second_round(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    seen: list[Any] = []

    def look(request: Object) -> Object:
        seen.append(request["object"]["spec"].get("n"))
        return allowing()

    hook.says["/m"] = look
    webhooks = hooks(hook, reinvocationPolicy="IfNeeded")
    with policies(place) as cluster, configured(place, *webhooks):
        cluster.mutation(
            apply("Object{spec: Object.spec{n: object.spec.n + 1}}"),
            reinvocationPolicy="IfNeeded",
        )
        cluster.bind_mutation()
        made = widgets.request("POST", "", widgets.obj("fourth", spec={"n": 0})).json

    assert made["spec"]["n"] == 2
    assert seen == [1, 2]


def test_policies_judge_webhook_configurations_and_webhooks_do_not_judge_policies(
    place: LiveServer, hook: AdmissionHook
) -> None:
    everything = [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    ]
    hook.says["/v"] = lambda request: denying()
    with policies(place) as cluster:
        _, validating = hooks(hook)
        validating["webhooks"][0]["rules"] = everything
        validating["webhooks"][0]["matchConditions"] = [
            {"name": "own", "expression": "request.resource.group.startsWith('admission')"}
        ]
        with configured(place, validating):
            cluster.policy(
                "false",
                matchConstraints={"resourceRules": everything},
                matchConditions=[
                    {"name": "hooks", "expression": "request.resource.resource.contains('webhook')"}
                ],
            )
            cluster.bind()
            body = {**validating, "metadata": {"name": "another"}}
            path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
            refused = place.request("POST", path, body)
            cluster.clear()

    assert refused.status == 422, refused.text


def test_reviews_of_access_are_never_a_policys_business(place: LiveServer) -> None:
    everything = [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    ]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    }
    with policies(place) as cluster:
        cluster.policy("false", matchConstraints={"resourceRules": everything})
        cluster.bind()
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

        assert place.request("POST", path, review).status == 201
