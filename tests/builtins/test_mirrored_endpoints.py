"""Endpoints of Services without selector, mirrored to EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.kube.builtin_rules.derived.mirrored_slices import MANAGED_BY, MIRROR, SERVICE_NAME
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


def test_ports_and_types_of_addresses_have_slices_of_their_own(place: LiveServer) -> None:
    _service(place, "many")
    both = _subset("10.1.2.3", "fd00::1")

    place.request("POST", _ENDPOINTS, _endpoints("many", both, _subset("10.1.2.3", port=81)))

    eventually(
        lambda: (
            sorted(
                (each["addressType"], each["ports"][0]["port"]) for each in _slices(place, "many")
            )
            == [("IPv4", 80), ("IPv4", 81), ("IPv6", 80)]
        )
    )


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
