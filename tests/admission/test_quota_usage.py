"""What quotas count beyond plain numbers, and which writes besides creates they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from typing import Any

import pytest

from instar.kube.builtin_rules.pods.pod_needs import pod_needs
from instar.server.registry.admission.plugins.quota.quota_scopes import in_scope
from instar.server.registry.admission.plugins.quota.quota_usage import object_usage
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
CLAIMS = ("resource.k8s.io", "resourceclaims")
_NUMBERS = count()


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        yield running


class Place:
    """A namespace with a quota."""

    def __init__(self, server: LiveServer, name: str) -> None:
        self.server, self.core = server, f"/api/v1/namespaces/{name}"

    def post(self, plural: str, name: str, **spec: Any) -> str:
        body = {"metadata": {"name": name}, "spec": spec}
        answer = self.server.request("POST", f"{self.core}/{plural}", body)
        return "" if answer.status == 201 else str(answer.json["message"])

    def patch(self, path: str, **body: Any) -> str:
        answer = self.server.request("PATCH", f"{self.core}/{path}", body, content_type=MERGE)
        return "" if answer.status == 200 else str(answer.json["message"])

    def used(self) -> Json:
        quota = self.server.request("GET", f"{self.core}/resourcequotas/q").json
        return dict((quota.get("status") or {}).get("used") or {})


@contextmanager
def limited(server: LiveServer, hard: Json, **spec: Any) -> Iterator[Place]:
    name = f"quota-{next(_NUMBERS)}"
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    place = Place(server, name)
    assert place.post("resourcequotas", "q", hard=hard, **spec) == ""
    yield place


def container(name: str = "c", **resources: Any) -> Json:
    return {"name": name, "image": "i", "resources": resources}


def term(**more: Any) -> Json:
    terms = [{"topologyKey": "zone", "labelSelector": {}, **more}]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def claim(*requests: Json) -> Json:
    return {"spec": {"devices": {"requests": list(requests)}}}


@pytest.mark.parametrize(
    ("request_", "devices"),
    [
        ({"exactly": {"deviceClassName": "gpu", "count": 2}}, 2),
        ({"exactly": {"deviceClassName": "gpu"}}, 1),
        ({"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}, 32),
        ({"exactly": {"deviceClassName": "gpu", "allocationMode": "Later"}}, 0),
        ({"firstAvailable": [{"deviceClassName": "gpu", "count": n} for n in (1, 3, 2)]}, 3),
    ],
)
def test_a_claim_takes_the_devices_that_it_may_get(request_: Json, devices: int) -> None:
    usage = object_usage(*CLAIMS, claim(request_, request_))

    assert usage[DEVICES] == 2 * devices


def test_devices_of_a_class_are_limited(server: LiveServer) -> None:
    path = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
    with limited(server, {DEVICES: "1"}) as place:
        path = path.format(place.core.rpartition("/")[2])
        exactly = {"deviceClassName": "gpu", "count": 2}
        request_ = {"name": "r", "exactly": exactly}
        answer = server.request("POST", path, {"metadata": {"name": "a"}, **claim(request_)})

        assert f"requested: {DEVICES}=2, used: {DEVICES}=0" in answer.json["message"]


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({"operator": "In", "values": ["gold"]}, (True, False, False)),
        ({"operator": "NotIn", "values": ["gold"]}, (False, True, True)),
        ({"operator": "Exists"}, (True, True, False)),
        ({"operator": "DoesNotExist"}, (False, False, True)),
    ],
)
def test_a_scope_selects_claims_by_their_attributes_class(
    asked: Json, fits: tuple[bool, ...]
) -> None:
    wanted = {"scopeName": "VolumeAttributesClass", **asked}
    quota = {"spec": {"scopeSelector": {"matchExpressions": [wanted]}}}
    claims: list[Json] = [
        {"spec": {"volumeAttributesClassName": "gold"}},
        {"spec": {}, "status": {"currentVolumeAttributesClassName": "tin"}},
        {"spec": {}},
    ]

    assert tuple(in_scope(quota, "", "persistentvolumeclaims", one) for one in claims) == fits
    assert not any(in_scope(quota, "", "pods", one) for one in claims)


def test_pods_that_look_into_other_namespaces_are_limited(server: LiveServer) -> None:
    scopes = ["CrossNamespacePodAffinity"]
    with limited(server, {"pods": "1"}, scopes=scopes) as place:
        pods = [term(), term(namespaces=["o"]), term(namespaceSelector={}), {}]
        told = [
            place.post("pods", f"p{number}", containers=[container()], affinity=affinity)
            for number, affinity in enumerate(pods)
        ]

    assert [bool(text) for text in told] == [False, False, True, False]


def test_containers_must_set_what_a_quota_limits(server: LiveServer) -> None:
    with limited(server, {"requests.cpu": "2", "limits.memory": "1Gi"}) as place:
        bare = place.post("pods", "bare", containers=[container("b"), container("a")])
        whole = {"requests": {"cpu": "1"}}
        of_pod = place.post("pods", "whole", containers=[container()], resources=whole)

    assert "must specify limits.memory for: a,b; requests.cpu for: a,b" in bare
    assert of_pod == ""


def test_an_update_may_not_take_more_than_the_quota_has(server: LiveServer) -> None:
    with limited(server, {"services.nodeports": "1", "requests.storage": "2Gi"}) as place:
        ports = [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]
        place.post("services", "s", ports=ports)

        told = place.patch("services/s", spec={"type": "NodePort"})
        assert "requested: services.nodeports=2, used: services.nodeports=0" in told
        fewer = {"type": "NodePort", "ports": ports[:1]}
        assert place.patch("services/s", spec=fewer) == ""
        assert place.patch("services/s", metadata={"labels": {"a": "b"}}) == ""


def test_a_pod_may_not_become_one_that_a_full_quota_counts(server: LiveServer) -> None:
    with limited(server, {"pods": "0"}, scopes=["Terminating"]) as place:
        assert place.post("pods", "p", containers=[container()]) == ""

        told = place.patch("pods/p", spec={"activeDeadlineSeconds": 5})

    assert "exceeded quota: q, requested: pods=1, used: pods=0" in told


def test_a_name_that_nothing_here_counts_keeps_its_value(server: LiveServer) -> None:
    hard = {"example.com/strange": "9", "count/pods": "5"}
    with limited(server, hard) as place:
        eventually(lambda: place.used() == {"count/pods": "0"})
        status = {"hard": hard, "used": {"example.com/strange": "4", "count/pods": "0"}}
        place.patch("resourcequotas/q/status", status=status)
        place.post("pods", "p", containers=[container()])

        eventually(lambda: place.used() == {"example.com/strange": "4", "count/pods": "1"})


def test_sidecars_overhead_and_the_pod_itself_count() -> None:
    side = {**container("s", requests={"cpu": "2"}), "restartPolicy": "Always"}
    spec: Json = {
        "initContainers": [
            container("i", requests={"cpu": "1", "memory": "9"}),
            side,
            container("j", requests={"cpu": "4"}),
        ],
        "containers": [container(requests={"cpu": "3"})],
        "overhead": {"cpu": "1"},
    }

    assert pod_needs({"spec": spec}, "requests") == {"cpu": 7, "memory": 9}
    assert pod_needs({"spec": spec}, "limits") == {}
    whole = {**spec, "resources": {"requests": {"cpu": "500m", "example.com/x": "1"}}}
    assert pod_needs({"spec": whole}, "requests")["cpu"] == Fraction(3, 2)


def test_a_resized_container_counts_with_the_larger_of_wanted_and_given() -> None:
    given = {"requests": {"cpu": "3"}}
    status: Json = {"containerStatuses": [{"name": "c", "resources": given}]}
    pod: Json = {"spec": {"containers": [container(requests={"cpu": "5"})]}, "status": status}

    assert pod_needs(pod, "requests") == {"cpu": 5}
    status["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert pod_needs(pod, "requests") == {"cpu": 3}
