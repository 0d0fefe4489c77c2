"""The status of PodDisruptionBudgets without a kube-controller-manager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.kube.builtin_rules.derived.disruption import desired_healthy, needs_scale
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_PODS = "/api/v1/namespaces/default/pods"
_SETS = "/apis/apps/v1/namespaces/default/replicasets"


@pytest.fixture(scope="module")
def place() -> Iterator[LiveServer]:
    with live_server(storage="memory:") as server:
        yield server


@pytest.mark.parametrize(
    ("spec", "expected", "desired", "scales"),
    [
        ({"minAvailable": 2}, 5, 2, False),
        ({"minAvailable": "50%"}, 5, 3, True),
        ({"maxUnavailable": 2}, 5, 3, True),
        ({"maxUnavailable": 7}, 5, 0, True),
        ({"maxUnavailable": "30%"}, 5, 3, True),
        ({}, 5, 0, False),
    ],
)
def test_a_budget_says_how_many_pods_stay(
    spec: Object, expected: int, desired: int, scales: bool
) -> None:
    assert desired_healthy(spec, expected) == desired
    assert needs_scale(spec) is scales


def _pod(place: LiveServer, name: str, app: str, owner: Object | None = None) -> None:
    owners = [] if owner is None else [owner]
    metadata = {"name": name, "labels": {"app": app}, "ownerReferences": owners}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    assert place.request("POST", _PODS, {"metadata": metadata, "spec": spec}).status == 201
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    answer = place.request(
        "PATCH",
        f"{_PODS}/{name}/status",
        {"status": status},
        content_type="application/merge-patch+json",
    )
    assert answer.status == 200, answer.text


def _budget(place: LiveServer, name: str, **spec: Any) -> None:
    body = {"metadata": {"name": name}, "spec": spec}
    assert place.request("POST", _BUDGETS, body).status == 201


def _shown(place: LiveServer, name: str) -> Object:
    status = place.request("GET", f"{_BUDGETS}/{name}").json.get("status") or {}
    return {**status, "conditions": [each["reason"] for each in status.get("conditions") or ()]}


def _comes_to(place: LiveServer, name: str, **wanted: Any) -> None:
    eventually(lambda: wanted.items() <= _shown(place, name).items())


def test_healthy_pods_beyond_the_minimum_may_go(place: LiveServer) -> None:
    _budget(place, "web", minAvailable=1, selector={"matchLabels": {"app": "web"}})
    _comes_to(place, "web", observedGeneration=1, disruptionsAllowed=0, expectedPods=0)

    for name in ("web-1", "web-2"):
        _pod(place, name, "web")
    _comes_to(
        place, "web", currentHealthy=2, desiredHealthy=1, expectedPods=2, disruptionsAllowed=1,
        conditions=["SufficientPods"],
    )  # fmt: skip

    evictions = [
        place.request(
            "POST",
            f"{_PODS}/{name}/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}},
        ).status
        for name in ("web-1", "web-2")
    ]
    assert evictions == [201, 429]
    _comes_to(
        place, "web", currentHealthy=1, expectedPods=1, disruptionsAllowed=0,
        conditions=["InsufficientPods"],
    )  # fmt: skip


def test_a_share_counts_from_the_scale_of_the_pods_controller(place: LiveServer) -> None:
    template = {
        "metadata": {"labels": {"app": "set"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    selector = {"matchLabels": {"app": "set"}}
    spec = {"replicas": 4, "selector": selector, "template": template}
    made = place.request("POST", _SETS, {"metadata": {"name": "set"}, "spec": spec}).json
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "set",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }

    _budget(place, "set", maxUnavailable="50%", selector=selector)
    _pod(place, "set-1", "set", owner)

    _comes_to(place, "set", currentHealthy=1, desiredHealthy=2, expectedPods=4)


def test_pods_of_an_unknown_controller_allow_no_disruption(place: LiveServer) -> None:
    owner = {"apiVersion": "no.io/v1", "kind": "No", "name": "x", "uid": "u", "controller": True}
    _budget(place, "lost", maxUnavailable=1, selector={"matchLabels": {"app": "lost"}})
    _comes_to(place, "lost", observedGeneration=1)

    _pod(place, "lost-1", "lost", owner)

    _comes_to(place, "lost", disruptionsAllowed=0, conditions=["SyncFailed"])
    [condition] = place.request("GET", f"{_BUDGETS}/lost").json["status"]["conditions"]
    assert condition["message"] == 'found no controllers for pod "lost-1"'


def test_an_empty_selector_means_all_pods_and_none_means_no_pod(place: LiveServer) -> None:
    for pod in place.request("GET", _PODS).json["items"]:
        name = pod["metadata"]["name"]
        place.request("DELETE", f"{_PODS}/{name}?gracePeriodSeconds=0")
    _budget(place, "all", minAvailable=0, selector={})
    _budget(place, "none", minAvailable=0)

    _pod(place, "some", "any")

    _comes_to(place, "all", expectedPods=1)
    _comes_to(place, "none", expectedPods=0, observedGeneration=1)


@pytest.mark.parametrize("evicted_at", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_a_budget_is_kept_whenever_its_pods_were_evicted(evicted_at: str) -> None:
    with live_server(storage="memory:") as place:
        _pod(place, "a", "far")
        _budget(place, "far", minAvailable=1, selector={"matchLabels": {"app": "far"}})
        _comes_to(place, "far", currentHealthy=1)
        change = {"status": {"disruptedPods": {"a": evicted_at}}}
        path = f"{_BUDGETS}/far/status"
        answer = place.request("PATCH", path, change, content_type="application/merge-patch+json")
        assert answer.status == 200, answer.text

        _pod(place, "b", "far")

        _comes_to(place, "far", expectedPods=2)
