"""Cluster IPs: from which networks they come, and when an address is free again."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from instar.server.registry.controllers.controller_names import CONTROLLERS_HERE, SERVICE_RANGES
from tests.support.server import Answer, LiveServer, live_server
from tests.support.waiting import eventually

_SERVICES = "/api/v1/namespaces/default/services"
_ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
_RANGES = "/apis/networking.k8s.io/v1/servicecidrs"
_SMALL = "203.0.113.0/29"
_MERGE = "application/merge-patch+json"


def _make(server: LiveServer, name: str, **spec: Any) -> Answer:
    body = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}
    return server.request("POST", _SERVICES, body)


def _make_range(server: LiveServer, *networks: str) -> None:
    body = {"metadata": {"name": "own"}, "spec": {"cidrs": list(networks)}}
    assert server.request("POST", _RANGES, body).status == 201


def _address_of(answer: Answer) -> str:
    assert answer.status == 201, answer.text
    return str(answer.json["spec"]["clusterIP"])


def test_an_address_of_a_range_that_a_client_made_is_given() -> None:
    with live_server(storage="memory:") as server:
        before = _make(server, "early", clusterIP="203.0.113.3")
        _make_range(server, _SMALL, "2001:db8::/112")

        after = _make(server, "late", clusterIP="203.0.113.3")

    assert before.status == 422
    assert "the provided network does not match the current range" in before.text
    assert _address_of(after) == "203.0.113.3"


def test_services_that_ask_for_no_address_fill_a_range_until_it_is_full() -> None:
    with live_server(storage="memory:") as server:
        _make_range(server, _SMALL)
        given = [_address_of(_make(server, f"s{number}")) for number in range(5)]
        full = _make(server, "one-more")

    assert len(set(given)) == 5
    assert all(ip_address(each) in ip_network(_SMALL) for each in given)
    assert (full.status, full.json["message"]) == (
        500,
        "Internal error occurred: failed to allocate a serviceIP: range is full",
    )


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_range_that_is_not_ready_gives_no_address(status: str) -> None:
    condition = {"type": "Ready", "status": status, "reason": "Terminating", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    others = CONTROLLERS_HERE - {SERVICE_RANGES}
    with live_server(storage="memory:", controllers=others) as server:
        _make_range(server, _SMALL)
        body = {"status": {"conditions": [condition]}}
        told = server.request("PATCH", f"{_RANGES}/own/status", body, content_type=_MERGE)

        refused = _make(server, "s", clusterIP="203.0.113.3")

    assert told.status == 200
    assert refused.status == 422


def test_a_range_that_is_being_deleted_gives_no_address() -> None:
    with live_server(storage="memory:") as server:
        _make_range(server, _SMALL)
        body = {"metadata": {"finalizers": ["example.com/wait"]}}
        server.request("PATCH", f"{_RANGES}/own", body, content_type=_MERGE)
        server.request("DELETE", f"{_RANGES}/own")

        refused = _make(server, "s", clusterIP="203.0.113.3")

    assert refused.status == 422


def test_the_address_object_is_there_when_the_service_is_answered() -> None:
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        address = _address_of(_make(server, "s"))

        shown = server.request("GET", f"{_ADDRESSES}/{address}")

    assert shown.json["spec"]["parentRef"]["name"] == "s"


def test_an_address_that_an_object_of_a_client_holds_is_not_given() -> None:
    held = {
        "metadata": {"name": "10.0.0.77"},
        "spec": {"parentRef": {"group": "example.com", "resource": "gateways", "name": "g"}},
    }
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        server.request("POST", _ADDRESSES, held)

        refused = _make(server, "s", clusterIP="10.0.0.77")

    assert refused.status == 422
    assert "provided IP is already allocated" in refused.text


def test_a_refused_service_and_a_dry_run_hold_no_address() -> None:
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        _make(server, "taken")
        again = _make(server, "taken", clusterIP="10.0.0.78")
        tried = server.request(
            "POST",
            f"{_SERVICES}?dryRun=All",
            {"metadata": {"name": "t"}, "spec": {"ports": [{"port": 1}], "clusterIP": "10.0.0.79"}},
        )
        holders = server.request("GET", _ADDRESSES).json["items"]

    assert (again.status, tried.status) == (409, 201)
    assert not {"10.0.0.78", "10.0.0.79"} & {each["metadata"]["name"] for each in holders}


def test_a_service_may_take_the_address_object_that_names_it() -> None:
    parent = {"resource": "services", "namespace": "default", "name": "s"}
    held = {"metadata": {"name": "10.0.0.81"}, "spec": {"parentRef": parent}}
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        server.request("POST", _ADDRESSES, held)

        own = _make(server, "s", clusterIP="10.0.0.81")

    assert _address_of(own) == "10.0.0.81"


def test_the_address_of_a_deleted_service_is_given_at_once_to_the_next() -> None:
    with live_server(storage="memory:", bootstrap_objects=True) as server:
        for number in range(20):
            made = _make(server, f"s{number}", clusterIP="10.0.0.80")
            assert _address_of(made) == "10.0.0.80"
            server.request("DELETE", f"{_SERVICES}/s{number}")

        def holder() -> str | None:
            shown = server.request("GET", f"{_ADDRESSES}/10.0.0.80")
            return "free" if shown.status == 404 else None

        assert eventually(holder) == "free"
