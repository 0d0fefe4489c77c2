"""Routes from APIService objects, conditions, and addresses of Services: pure functions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.server.aggregation.conditions import (
    LOCAL,
    PASSED,
    Availability,
    service_trouble,
    with_condition,
)
from instar.server.aggregation.go_http import encode_query, escape_header_key
from instar.server.aggregation.routes import (
    BackendService,
    RankedVersion,
    RouteTable,
    group_rank,
    read_route,
    sort_versions,
)
from instar.server.aggregation.service_endpoints import ServiceRouting, Unroutable
from instar.wire.webhooks.resolver import HostPort, ServiceKey
from tests.aggregation.support import api_service, remote

_BACKEND = BackendService("default", "echo", 443)


class _Objects:
    def __init__(self, service: dict[str, Any] | None, *slices: dict[str, Any]) -> None:
        self._service, self._slices = service, list(slices)

    def service(self, namespace: str, name: str) -> dict[str, Any] | None:
        return self._service

    def slices(self, namespace: str, name: str) -> list[dict[str, Any]]:
        return self._slices


def _service(kind: str = "ClusterIP", address: str = "10.0.0.9", port: int = 443) -> dict[str, Any]:
    ports = [{"name": "https", "port": port}]
    return {"spec": {"type": kind, "clusterIP": address, "ports": ports, "ipFamilies": ["IPv4"]}}


def _slice(port_name: str = "https", ready: bool | None = True) -> dict[str, Any]:
    conditions = {} if ready is None else {"ready": ready}
    return {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.7"], "conditions": conditions}],
        "ports": [{"name": port_name, "port": 8443}],
    }


@pytest.mark.parametrize(
    ("path", "led"),
    [
        ("/apis/g.example.com/v1", True),
        ("/apis/g.example.com/v1/", True),
        ("/apis/g.example.com/v1/x/y/z", True),
        ("/apis//g.example.com/v1/x", True),
        ("/apis/g%2Eexample.com/v1/x", True),
        ("/apis/g.example.com", False),
        ("/apis/g.example.com/v2/x", False),
        ("/apis/g.example.com/v1x", False),
        ("/apis", False),
        ("/api/v1/pods", False),
        ("/openapi/v3/apis/g.example.com/v1", True),
        ("/openapi/v3/apis/g.example.com/v2", False),
    ],
)
def test_a_route_is_the_exact_group_and_version_with_everything_below(path: str, led: bool) -> None:
    """Line 9."""
    table = RouteTable([read_route(api_service("g.example.com", service=remote(443)))])

    assert (table.find(path) is not None) is led


def test_without_the_condition_a_remote_route_is_not_available() -> None:
    """Line 28."""
    assert not read_route(api_service("g.example.com", service=remote(443))).available


def test_a_flipped_route_is_available_by_its_old_condition() -> None:
    """Line 29: kube-apiserver routes at once, too."""
    obj = api_service("g.example.com", service=remote(443))
    obj["status"] = {"conditions": [{"type": "Available", "status": "True", "reason": "Local"}]}

    assert read_route(obj).available


def test_the_port_is_443_unless_given() -> None:
    """Line 2."""
    obj = api_service("g.example.com", service={"namespace": "default", "name": "echo"})

    backend = read_route(obj).backend

    assert backend is not None
    assert (backend.port, backend.server_name) == (443, "echo.default.svc")


def test_versions_are_ordered_by_priority_and_then_as_kubernetes_versions() -> None:
    """Line 10."""
    versions = [RankedVersion(name, 1000, 100) for name in ("v1beta1", "v2", "v1", "v2alpha1")] + [
        RankedVersion("v0", 1000, 200)
    ]

    assert [one.name for one in sort_versions(versions)] == [
        "v0",
        "v2",
        "v1",
        "v1beta1",
        "v2alpha1",
    ]


def test_a_group_ranks_by_its_highest_priority_and_then_by_name() -> None:
    """Line 11."""
    low, high = RankedVersion("v1", 100, 1), RankedVersion("v2", 2000, 1)

    assert group_rank("b", [low, high]) == (-2000, "v2.b")
    assert group_rank("a", [low]) > group_rank("b", [low, high])


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (_Objects(None), ("False", "ServiceNotFound", 'service/echo in "default" is not present')),
        (
            _Objects(_service(port=80), _slice()),
            ("False", "ServicePortError", 'service/echo in "default" is not listening on port 443'),
        ),
        (
            _Objects(_service()),
            (
                "False",
                "EndpointsNotFound",
                'cannot find endpointslices for service/echo in "default"',
            ),
        ),
        (
            _Objects(_service(), _slice("http")),
            (
                "False",
                "MissingEndpoints",
                'endpointslices for service/echo in "default" have no addresses with port name '
                '"https"',
            ),
        ),
        (
            _Objects(_service(), _slice(ready=False)),
            (
                "False",
                "MissingEndpoints",
                'endpointslices for service/echo in "default" have no addresses with port name '
                '"https"',
            ),
        ),
        (_Objects(_service(), _slice(ready=None)), None),
        (_Objects(_service("ExternalName")), None),
        (_Objects(_service("NodePort", port=80)), None),
    ],
)
def test_what_is_wrong_with_a_service_is_said_as_upstream(
    objects: _Objects, expected: tuple[str, str, str] | None
) -> None:
    """Line 26."""
    assert service_trouble(_BACKEND, objects) == expected


def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    """Line 27."""
    first = with_condition(api_service("g"), Availability("False", "A", "a"), "t1")
    assert first is not None
    second = with_condition(first, Availability("False", "B", "b"), "t2")
    assert second is not None
    third = with_condition(second, PASSED, "t3")
    assert third is not None

    times = [one["status"]["conditions"][0]["lastTransitionTime"] for one in (first, second, third)]
    assert times == ["t1", "t1", "t3"]


def test_a_condition_that_is_there_already_is_not_written() -> None:
    """Line 26."""
    obj = with_condition(api_service("g"), LOCAL, "t1")

    assert obj is not None
    assert with_condition(obj, LOCAL, "t2") is None


@pytest.mark.parametrize(
    ("objects", "by_endpoints", "address"),
    [
        (_Objects(_service()), False, HostPort("10.0.0.9", 443)),
        (_Objects(_service("LoadBalancer")), False, HostPort("10.0.0.9", 443)),
        (_Objects(_service(), _slice("http"), _slice()), True, HostPort("192.0.2.7", 8443)),
        (
            _Objects({"spec": {"type": "ExternalName", "externalName": "far.example.com"}}),
            False,
            HostPort("far.example.com", 443),
        ),
    ],
)
def test_a_service_is_reached_by_its_kind(
    objects: _Objects, by_endpoints: bool, address: HostPort
) -> None:
    """Line 19."""
    assert ServiceRouting({}, by_endpoints).resolve(_BACKEND, objects) == address


@pytest.mark.parametrize(
    ("objects", "by_endpoints", "text"),
    [
        (
            _Objects(_service(address="None")),
            False,
            'cannot route to service with ClusterIP "None"',
        ),
        (_Objects(_service(port=1)), False, 'no service port 443 found for service "echo"'),
        (_Objects(_service("ExternalName")), True, 'unsupported service type "ExternalName"'),
        (_Objects(_service()), True, 'no endpoints available for service "echo"'),
        (_Objects(_service(), _slice(ready=False)), True, "no endpoints available for service"),
    ],
)
def test_a_service_without_an_address_is_an_error(
    objects: _Objects, by_endpoints: bool, text: str
) -> None:
    """Line 19."""
    with pytest.raises(Unroutable, match=text.replace("(", r"\(")):
        ServiceRouting({}, by_endpoints).resolve(_BACKEND, objects)


def test_an_address_given_by_the_operator_comes_first() -> None:
    """Line 19."""
    mappings = {ServiceKey("default", "echo", None): HostPort("127.0.0.1", 9443)}

    found = ServiceRouting(mappings).resolve(_BACKEND, _Objects(None))

    assert found == HostPort("127.0.0.1", 9443)


def test_the_kubernetes_service_is_this_server() -> None:
    """Line 19."""
    own = ServiceRouting({}, own_address=lambda: HostPort("127.0.0.1", 6443))

    found = own.resolve(BackendService("default", "kubernetes", 443), _Objects(None))

    assert found == HostPort("127.0.0.1", 6443)


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        (b"x=1&b=%2F&z;y", "b=%2F&x=1"),
        (b"watch", "watch="),
        (b"a=b+c&a=%41", "a=b+c&a=A"),
        (b"a=%zz&b=1", "b=1"),
        (b"&&", ""),
        (b"", ""),
    ],
)
def test_queries_are_written_anew_as_go_writes_them(sent: bytes, written: str) -> None:
    assert encode_query(sent) == written


@given(st.binary())
def test_a_written_query_stays_as_it_is(raw: bytes) -> None:
    once = encode_query(raw)

    assert encode_query(once.encode()) == once
    assert once.isascii()
    assert not set(once) & set("\r\n ;")


def test_keys_of_extras_are_lower_case_and_escaped() -> None:
    """Line 14."""
    assert escape_header_key("Scopes/x%\n") == "scopes%2fx%25%0a"
