"""Events of the core group and of events.k8s.io are one resource: rules that name either group
match both, and see the event in the form of the group that they name."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from tests.admission.policies.support import Cluster
from tests.support.admission import AdmissionHook, configuration, configured, patching
from tests.support.server import LiveServer

CORE, SECOND = "/api/v1", "/apis/events.k8s.io/v1"
_NAMES = {CORE: ("", "message", "involvedObject"), SECOND: ("events.k8s.io", "note", "regarding")}


def _event(api: str, name: str, text: str) -> Object:
    _, told, about = _NAMES[api]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "type": "Normal",
        "reason": "Tested",
        "action": "Test",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingInstance": "tests",
        ("reportingComponent" if api == CORE else "reportingController"): "tests.example.com/x",
        told: text,
        about: {"kind": "Pod", "namespace": "default", "name": "p"},
    }


def _rule(api: str) -> Object:
    return {
        "operations": ["CREATE"],
        "apiGroups": [_NAMES[api][0]],
        "apiVersions": ["v1"],
        "resources": ["events"],
    }


def _make(place: LiveServer, api: str, name: str, text: str = "first") -> Any:
    return place.request("POST", f"{api}/namespaces/default/events", _event(api, name, text))


@pytest.mark.parametrize("requested", [CORE, SECOND])
@pytest.mark.parametrize("named", [CORE, SECOND])
@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_a_webhook_sees_an_event_in_the_form_of_the_group_it_names(
    place: LiveServer, hook: AdmissionHook, requested: str, named: str, kind: str
) -> None:
    webhook = hook.webhook("v.ref.io", "/v", rules=[_rule(named)])
    group, told, about = _NAMES[named]

    with configured(place, configuration(kind, webhook)):
        made = _make(place, requested, f"seen-{kind.lower()}-{len(named)}-{len(requested)}")

    assert made.status == 201, made.text
    [asked] = hook.asked("/v")
    assert asked["kind"] == {"group": group, "version": "v1", "kind": "Event"}
    assert asked["resource"] == {"group": group, "version": "v1", "resource": "events"}
    assert asked["requestResource"]["group"] == _NAMES[requested][0]
    seen = asked["object"]
    assert (seen["apiVersion"], seen[told]) == (named.split("/", 2)[2], "first")
    assert seen[about]["name"] == "p"


@pytest.mark.parametrize("requested", [CORE, SECOND])
@pytest.mark.parametrize("named", [CORE, SECOND])
def test_a_webhook_changes_an_event_in_the_form_of_the_group_it_names(
    place: LiveServer, hook: AdmissionHook, requested: str, named: str
) -> None:
    path = f"/{_NAMES[named][1]}"
    hook.says["/m"] = lambda request: patching({"op": "replace", "path": path, "value": "changed"})
    webhook = hook.webhook("m.ref.io", "/m", rules=[_rule(named)])

    with configured(place, configuration("Mutating", webhook)):
        made = _make(place, requested, f"changed-{len(named)}-{len(requested)}").json

    assert made[_NAMES[requested][1]] == "changed"
    assert made["apiVersion"] == requested.split("/", 2)[2]


@pytest.mark.parametrize(("requested", "named"), [(CORE, SECOND), (SECOND, CORE)])
def test_a_webhook_with_an_exact_match_is_not_asked_about_the_other_group(
    place: LiveServer, hook: AdmissionHook, requested: str, named: str
) -> None:
    webhook = hook.webhook("v.ref.io", "/v", rules=[_rule(named)], matchPolicy="Exact")

    with configured(place, configuration("Validating", webhook)):
        assert _make(place, requested, f"exact-{len(named)}").status == 201

    assert hook.asked("/v") == []


@pytest.mark.parametrize(("requested", "named"), [(CORE, SECOND), (SECOND, CORE)])
def test_a_policy_for_one_group_judges_events_of_the_other(
    place: LiveServer, requested: str, named: str
) -> None:
    cluster = Cluster(place, "ref.io")
    try:
        told = _NAMES[named][1]
        rules = {"resourceRules": [_rule(named)]}
        cluster.policy(f"object.{told} != 'bad'", matchConstraints=rules)
        cluster.bind()

        refused = _make(place, requested, f"judged-{len(named)}", "bad")
        accepted = _make(place, requested, f"judged-{len(named)}", "good")
    finally:
        cluster.clear()

    assert (refused.status, accepted.status) == (422, 201), refused.text
