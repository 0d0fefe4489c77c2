"""Endpoints of Services without selector, mirrored to EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.kube.builtin_rules.derived.mirrored_slices import (
    MANAGED_BY,
    MIRROR,
    SERVICE_NAME,
    slices_of,
)
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

_SERVICES = "/api/v1/namespaces/default/services"
_ENDPOINTS = "/api/v1/namespaces/default/endpoints"
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


@pytest.fixture(scope="module")
def place() -> Iterator[LiveServer]:
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        yield server


def _service(place: LiveServer, name: str, **spec: Any) -> None:
    body = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}
    assert place.request("POST", _SERVICES, body).status == 201


def _endpoints(name: str, *subsets: Object, **metadata: Any) -> Object:
    return {"metadata": {"name": name, **metadata}, "subsets": list(subsets)}


def _subset(*hosts: str, port: int = 80, **more: Any) -> Object:
    return {"addresses": [{"ip": host} for host in hosts], "ports": [{"port": port}], **more}


def _slices(place: LiveServer, name: str) -> list[Object]:
    found = place.request("GET", f"{_SLICES}?labelSelector={SERVICE_NAME}={name}").json["items"]
    return [each for each in found if each["metadata"]["labels"].get(MANAGED_BY) == MIRROR]


def _hosts(place: LiveServer, name: str) -> list[list[tuple[str, bool]]]:
    return sorted(
        [(each["addresses"][0], each["conditions"]["ready"]) for each in one["endpoints"]]
        for one in _slices(place, name)
    )


def test_slices_follow_their_endpoints(place: LiveServer) -> None:
    _service(place, "own")
    first = _endpoints(
        "own",
        _subset("10.1.2.3", notReadyAddresses=[{"ip": "10.1.2.4", "hostname": "h"}]),
        labels={"a": "b"},
        annotations={"c": "d"},
    )
    made = place.request("POST", _ENDPOINTS, first).json
    eventually(lambda: _hosts(place, "own") == [[("10.1.2.3", True), ("10.1.2.4", False)]])

    [slice_] = _slices(place, "own")
    assert slice_["addressType"] == "IPv4"
    assert slice_["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]
    assert slice_["endpoints"][1]["hostname"] == "h"
    assert slice_["metadata"]["labels"]["a"] == "b"
    assert slice_["metadata"]["annotations"] == {"c": "d"}
    assert slice_["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert slice_["metadata"]["name"].startswith("own-")

    place.request("PUT", f"{_ENDPOINTS}/own", _endpoints("own", _subset("10.1.2.9")))
    eventually(lambda: _hosts(place, "own") == [[("10.1.2.9", True)]])
    assert [each["metadata"]["uid"] for each in _slices(place, "own")] == [
        slice_["metadata"]["uid"]
    ]

    place.request("DELETE", f"{_ENDPOINTS}/own")
    eventually(lambda: _slices(place, "own") == [])


def _shown(place: LiveServer, name: str) -> list[tuple[str, list[int], list[str]]]:
    return sorted(
        (
            each["addressType"],
            sorted(port["port"] for port in each.get("ports") or ()),
            sorted(one["addresses"][0] for one in each["endpoints"]),
        )
        for each in _slices(place, name)
    )


def test_each_set_of_ports_and_type_of_addresses_has_a_slice(place: LiveServer) -> None:
    _service(place, "many")
    both = _subset("10.1.2.3", "fd00::1")
    first = _endpoints("many", both, _subset("10.1.2.4", port=81))
    place.request("POST", _ENDPOINTS, first)
    eventually(
        lambda: (
            _shown(place, "many")
            == [
                ("IPv4", [80], ["10.1.2.3"]),
                ("IPv4", [81], ["10.1.2.4"]),
                ("IPv6", [80], ["fd00::1"]),
            ]
        )
    )
    before = {each["metadata"]["uid"] for each in _slices(place, "many")}

    place.request("PUT", f"{_ENDPOINTS}/many", _endpoints("many", _subset("10.1.2.4", port=82)))

    eventually(lambda: _shown(place, "many") == [("IPv4", [82], ["10.1.2.4"])])
    assert {each["metadata"]["uid"] for each in _slices(place, "many")} < before


def _mirrored(*subsets: Object) -> list[tuple[list[int], list[tuple[str, bool]]]]:
    metadata = {"name": "x", "namespace": "default", "uid": "u"}
    return [
        (
            [port["port"] for port in each["ports"]],
            [(one["addresses"][0], one["conditions"]["ready"]) for one in each["endpoints"]],
        )
        for each in slices_of({"metadata": metadata, "subsets": list(subsets)})
    ]


def test_subsets_are_packed_before_they_are_mirrored() -> None:
    unready = {"notReadyAddresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}
    two = [{"ip": "10.0.0.1", "targetRef": {"uid": uid}} for uid in ("a", "b")]

    same_ports = _mirrored(_subset("10.0.0.1"), _subset("10.0.0.2"), _subset("10.0.0.1"))
    same_addresses = _mirrored(_subset("10.0.0.1"), _subset("10.0.0.1", port=81))
    overlapping = _mirrored(_subset("10.0.0.1", "10.0.0.2"), _subset("10.0.0.1", port=81))
    disputed = _mirrored(_subset("10.0.0.1"), unready)
    shared = _mirrored({"addresses": two, "ports": [{"port": 80}]})

    assert same_ports == [([80], [("10.0.0.1", True), ("10.0.0.2", True)])]
    assert same_addresses == [([80, 81], [("10.0.0.1", True)])]
    assert overlapping == [
        ([80], [("10.0.0.1", True), ("10.0.0.2", True)]),
        ([81], [("10.0.0.1", True)]),
    ]
    assert disputed == [([80], [("10.0.0.1", False)])]
    assert shared == [([80], [("10.0.0.1", True), ("10.0.0.1", True)])]
    assert _mirrored({"addresses": two[:1]}) == [([], [("10.0.0.1", True)])]
    assert _mirrored({"ports": [{"port": 80}]}, {}) == []


def _hosts_of(number: int, first: int = 0) -> list[str]:
    return [f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}" for at in range(first, first + number)]


def test_a_slice_has_at_most_a_thousand_endpoints_of_all_subsets() -> None:
    subsets = [_subset(*_hosts_of(600, 600 * at)) for at in range(3)]

    [(_, members)] = _mirrored(*subsets)

    assert len(members) == 1000


def test_subsets_that_share_many_ports_are_packed_only_by_equal_ports() -> None:
    hosts, ports = _hosts_of(1000), range(1, 400)
    everywhere = {**_subset(*hosts), "ports": [{"port": port} for port in ports]}
    single = [_subset(f"10.9.{port >> 8}.{port & 255}", port=port) for port in ports]

    found = _mirrored(everywhere, *single, *single)

    assert len(found) == 1 + len(single)
    assert found[0] == (list(ports), [(host, True) for host in hosts])


@pytest.mark.parametrize(
    ("name", "spec", "metadata"),
    [
        ("selected", {"selector": {"a": "b"}}, {}),
        ("skipped", {}, {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}),
        ("elects", {}, {"annotations": {"control-plane.alpha.kubernetes.io/leader": "x"}}),
    ],
)
def test_endpoints_of_controllers_and_those_that_opt_out_are_not_mirrored(
    place: LiveServer, name: str, spec: Object, metadata: Object
) -> None:
    _service(place, name, **spec)
    _service(place, f"after-{name}")
    place.request("POST", _ENDPOINTS, _endpoints(name, _subset("10.1.2.3"), **metadata))
    place.request("POST", _ENDPOINTS, _endpoints(f"after-{name}", _subset("10.1.2.3")))

    eventually(lambda: len(_slices(place, f"after-{name}")) == 1)
    assert _slices(place, name) == []


def test_a_slice_that_is_deleted_comes_back_and_goes_with_its_service(place: LiveServer) -> None:
    _service(place, "back")
    place.request("POST", _ENDPOINTS, _endpoints("back", _subset("10.1.2.3")))
    eventually(lambda: len(_slices(place, "back")) == 1)
    [slice_] = _slices(place, "back")

    place.request("DELETE", f"{_SLICES}/{slice_['metadata']['name']}")
    eventually(
        lambda: (
            [each["metadata"]["uid"] for each in _slices(place, "back")]
            not in ([], [slice_["metadata"]["uid"]])
        )
    )

    place.request("DELETE", f"{_SERVICES}/back")
    eventually(lambda: _slices(place, "back") == [])
