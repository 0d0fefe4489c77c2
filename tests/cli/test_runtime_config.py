"""``--runtime-config``: which built-in versions are served, beta ones among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.cli.serving.runtime_config import served_versions
from instar.cli.shared.failure import CliFailure
from instar.server.registry.kinds.builtin_resources import default_versions, known_versions
from tests.support.server import LiveServer, live_server

_BETA = {each for each in known_versions() if "beta" in each.version}
_ALPHA = {each for each in known_versions() if "alpha" in each.version}


def test_versions_are_named_with_commas_and_in_several_flags() -> None:
    served = served_versions(
        [
            "batch/v1=false,autoscaling/v1=0",
            "apps/v1=true,resource.k8s.io/v1beta2",
            "batch/v9=false",
        ]
    )

    assert default_versions() - served == {("batch", "v1"), ("autoscaling", "v1")}
    assert served - default_versions() == {("resource.k8s.io", "v1beta2")}


@pytest.mark.parametrize("value", ["api/beta=false", "api/ga=true", "v1=true", ""])
def test_settings_that_restate_the_default_are_accepted(value: str) -> None:
    assert served_versions([value]) == default_versions()


def test_levels_name_all_their_versions_and_a_version_counts_more() -> None:
    assert served_versions(["api/beta=true"]) == default_versions() | _BETA
    assert served_versions(["api/all=true"]) == known_versions()
    assert served_versions(["api/all=true,api/alpha=false"]) == known_versions() - _ALPHA
    assert served_versions(["storage.k8s.io/v1beta1=false,api/beta=true"]) == (
        default_versions() | (_BETA - {("storage.k8s.io", "v1beta1")})
    )


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("nosuch/v1=true", "unknown api groups nosuch/v1"),
        ("foo=true", "runtime-config invalid key foo"),
        ("batch/v1/jobs=false", "runtime-config invalid key batch/v1/jobs"),
        ("batch/v1=maybe", "invalid value batch/v1=maybe"),
        ("v1=false", "cannot switch it off"),
        ("api/all=false", "cannot switch it off"),
        ("policy/v1=false", "cannot switch it off"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(value: str, told: str) -> None:
    with pytest.raises(CliFailure, match=told):
        served_versions([value])


def test_a_version_that_is_off_is_neither_served_nor_discovered() -> None:
    versions = served_versions(["batch/v1=false,autoscaling/v1=false"])
    with live_server(storage="memory:", bootstrap_objects=True, versions=versions) as server:
        jobs = server.request("GET", "/apis/batch/v1/jobs")
        old = server.request("GET", "/apis/autoscaling/v1/horizontalpodautoscalers")
        new = server.request("GET", "/apis/autoscaling/v2/horizontalpodautoscalers")
        groups = server.request("GET", "/apis").json["groups"]
        openapi = server.request("GET", "/openapi/v3").json["paths"]

    shown = {group["name"]: [one["version"] for one in group["versions"]] for group in groups}
    assert (jobs.status, old.status, new.status) == (404, 404, 200)
    assert "batch" not in shown
    assert shown["autoscaling"] == ["v2"]
    assert "apis/batch/v1" not in openapi


@pytest.fixture(scope="module")
def everything() -> Iterator[LiveServer]:
    versions = served_versions(["api/all=true"])
    with live_server(storage="memory:", bootstrap_objects=True, versions=versions) as server:
        yield server


def test_versions_are_discovered_in_upstreams_order(everything: LiveServer) -> None:
    groups = everything.request("GET", "/apis").json["groups"]
    openapi = everything.request("GET", "/openapi/v3").json["paths"]

    shown = {group["name"]: [one["version"] for one in group["versions"]] for group in groups}
    assert shown["resource.k8s.io"] == ["v1", "v1beta2", "v1beta1", "v1alpha3"]
    assert shown["admissionregistration.k8s.io"] == ["v1", "v1beta1", "v1alpha1"]
    assert shown["coordination.k8s.io"] == ["v1", "v1beta1", "v1alpha2"]
    assert shown["internal.apiserver.k8s.io"] == ["v1alpha1"]
    assert {f"apis/{each.group}/{each.version}" for each in _BETA | _ALPHA} <= set(openapi)


_CLAIMS = "namespaces/default/resourceclaims"
_REQUEST = {"name": "r", "deviceClassName": "c"}
_PARENT = {"resource": "x", "name": "y"}


def _get(server: LiveServer, version: str, what: str) -> dict[str, Any]:
    answer = server.request("GET", f"/apis/resource.k8s.io/{version}/{what}")
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json
    return found


def test_a_claim_of_the_first_beta_is_seen_at_every_version(everything: LiveServer) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [_REQUEST]}}}
    path = f"/apis/resource.k8s.io/v1beta1/{_CLAIMS}"
    assert everything.request("POST", path, body).status == 201

    old = _get(everything, "v1beta1", f"{_CLAIMS}/a")["spec"]["devices"]["requests"]
    later = [
        _get(everything, version, f"{_CLAIMS}/a")["spec"]["devices"]["requests"]
        for version in ("v1beta2", "v1")
    ]

    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    assert old == [{"name": "r", **exactly}]
    assert later == [[{"name": "r", "exactly": exactly}]] * 2


def test_a_slice_of_a_later_version_is_seen_at_the_first_beta(everything: LiveServer) -> None:
    device = {"name": "d", "attributes": {"a": {"int": 1}}}
    spec = {
        "driver": "x.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [device],
    }
    body = {"metadata": {"name": "s"}, "spec": spec}
    made = everything.request("POST", "/apis/resource.k8s.io/v1/resourceslices", body)
    assert made.status == 201, made.text

    shown = _get(everything, "v1beta1", "resourceslices/s")["spec"]["devices"]

    assert shown == [{"name": "d", "basic": {"attributes": {"a": {"int": 1}}}}]


def test_a_claim_of_the_first_beta_is_judged_like_a_later_one(everything: LiveServer) -> None:
    body = {"metadata": {"name": "b"}, "spec": {"devices": {"requests": [{"name": "r"}]}}}
    path = f"/apis/resource.k8s.io/v1beta1/{_CLAIMS}"

    assert everything.request("POST", path, body).status == 422


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("networking.k8s.io/v1beta1/servicecidrs", {"spec": {"cidrs": ["10.9.0.0/24"]}}),
        (
            "networking.k8s.io/v1beta1/ipaddresses",
            {"metadata": {"name": "10.9.0.1"}, "spec": {"parentRef": _PARENT}},
        ),
        ("storage.k8s.io/v1beta1/volumeattributesclasses", {"driverName": "x.example.com"}),
        (
            "coordination.k8s.io/v1beta1/namespaces/default/leasecandidates",
            {
                "spec": {
                    "leaseName": "l", "strategy": "OldestEmulationVersion",
                    "binaryVersion": "1.36.0", "emulationVersion": "1.35.0",
                }
            },
        ),
        (
            "internal.apiserver.k8s.io/v1alpha1/storageversions",
            {"metadata": {"name": "apps.deployments"}, "spec": {}},
        ),
        (
            "resource.k8s.io/v1alpha3/resourcepoolstatusrequests",
            {"spec": {"driver": "gpu.example.com"}},
        ),
        (
            "resource.k8s.io/v1alpha3/devicetaintrules",
            {"spec": {"taint": {"key": "k.example.com/a", "effect": "NoSchedule"}}},
        ),
    ],
)  # fmt: skip
def test_objects_of_beta_and_alpha_versions_are_stored(
    everything: LiveServer, path: str, body: dict[str, Any]
) -> None:
    body = {**body, "metadata": {"name": "own", **body.get("metadata", {})}}

    made = everything.request("POST", f"/apis/{path}", body)
    shown = everything.request("GET", f"/apis/{path}/{body['metadata']['name']}")

    assert (made.status, shown.status) == (201, 200), made.text
    assert shown.json["apiVersion"] == "/".join(path.split("/")[:2])


_CANDIDATES = "coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"
_RULES = "resource.k8s.io/v1alpha3/devicetaintrules"
_REQUESTS = "resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
_STORED = "internal.apiserver.k8s.io/v1alpha1/storageversions"


def _candidate(**changes: str) -> dict[str, Any]:
    spec = {
        "leaseName": "l",
        "strategy": "OldestEmulationVersion",
        "binaryVersion": "1.36.0",
        "emulationVersion": "1.36.0",
    }
    return {"spec": {**spec, **changes}}


def _taint(**changes: Any) -> dict[str, Any]:
    return {"spec": {"taint": {"key": "k", "effect": "NoSchedule"}, **changes}}


@pytest.mark.parametrize(
    ("path", "body", "causes"),
    [
        (_CANDIDATES, _candidate(leaseName=""), ["spec.leaseName: Required value"]),
        (
            _CANDIDATES,
            _candidate(binaryVersion="1.36"),
            [
                'spec.binaryVersion: Invalid value: "1.36": must be a valid semantic version',
                'spec.binaryVersion: Invalid value: "1.36": must be greater than or equal to '
                "`emulationVersion`",
            ],
        ),
        (
            _CANDIDATES,
            _candidate(binaryVersion="1.35.0"),
            [
                'spec.binaryVersion: Invalid value: "1.35.0": must be greater than or equal to '
                "`emulationVersion`"
            ],
        ),
        (
            _CANDIDATES,
            _candidate(emulationVersion=""),
            [
                "spec.emulationVersion: Required value: must be specified when `strategy` is "
                "'OldestEmulationVersion'"
            ],
        ),
        (
            _CANDIDATES,
            _candidate(strategy="Newest"),
            [
                'spec.strategy.strategy: Unsupported value: "Newest": supported values: '
                '"OldestEmulationVersion"'
            ],
        ),
        (
            _STORED,
            {"spec": {}},
            ['metadata.name: Invalid value: "own": name must be in the form of <group>.<resource>'],
        ),
        (
            _RULES,
            _taint(taint={"key": "k"}),
            ["spec.taint.effect: Required value"],
        ),
        (
            _RULES,
            _taint(taint={"key": "k", "effect": "Never"}),
            [
                'spec.taint.effect: Unsupported value: "Never": supported values: "NoExecute", '
                '"NoSchedule", "None"'
            ],
        ),
        (
            _RULES,
            _taint(deviceSelector={"driver": ""}),
            ["spec.deviceSelector.driver: Required value"],
        ),
        (_REQUESTS, {"spec": {"driver": ""}}, ["spec.driver: Required value"]),
        (
            _REQUESTS,
            {"spec": {"driver": "d", "limit": 1001}},
            ["spec.limit: Invalid value: 1001: must be less than or equal to 1000"],
        ),
    ],
)
def test_kinds_that_are_served_on_request_only_are_judged(
    everything: LiveServer, path: str, body: dict[str, Any], causes: list[str]
) -> None:
    body = {**body, "metadata": {"name": "own"}}

    refused = everything.request("POST", f"/apis/{path}", body)

    assert refused.status == 422, refused.text
    told = [f"{each['field']}: {each['message']}" for each in refused.json["details"]["causes"]]
    assert told == causes


def test_the_status_of_a_storage_version_is_judged(everything: LiveServer) -> None:
    path = f"/apis/{_STORED}/judged.foos"
    made = everything.request(
        "POST", f"/apis/{_STORED}", {"metadata": {"name": "judged.foos"}, "spec": {}}
    ).json
    server = {"apiServerID": "a", "encodingVersion": "v1", "decodableVersions": ["v2"]}

    refused = everything.request(
        "PUT", f"{path}/status", {**made, "status": {"storageVersions": [server]}}
    )
    accepted = everything.request(
        "PUT",
        f"{path}/status",
        {
            **made,
            "status": {
                "storageVersions": [{**server, "decodableVersions": ["v1"]}],
                "commonEncodingVersion": "v1",
            },
        },
    )

    assert [each["field"] for each in refused.json["details"]["causes"]] == [
        "status.storageVersions[0].decodableVersions",
        "status.commonEncodingVersion",
    ]
    assert accepted.status == 200, accepted.text
