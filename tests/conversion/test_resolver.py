"""Which address stands behind a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from instar.wire.webhooks.resolver import (
    HostPort,
    ServiceKey,
    ServiceResolver,
    Unresolved,
    parse_mapping,
)
from tests.conversion.helpers import run


def resolve(
    spec: dict[str, Any] | None, mappings: Mapping[ServiceKey, HostPort] | None = None
) -> HostPort:
    async def lookup(namespace: str, name: str) -> Mapping[str, Any] | None:
        return None if spec is None else {"spec": spec}

    return run(ServiceResolver(mappings, lookup).resolve("ns", "svc", 8443))


@pytest.mark.parametrize(
    ("text", "key", "target"),
    [
        ("ns/svc=127.0.0.1:9443", ServiceKey("ns", "svc", None), HostPort("127.0.0.1", 9443)),
        ("ns/svc:8443=host:1", ServiceKey("ns", "svc", 8443), HostPort("host", 1)),
        ("ns/svc=[::1]:9443", ServiceKey("ns", "svc", None), HostPort("::1", 9443)),
    ],
)
def test_a_mapping_is_read(text: str, key: ServiceKey, target: HostPort) -> None:
    assert parse_mapping(text) == (key, target)


@pytest.mark.parametrize(
    "text", ["", "ns/svc", "svc=h:1", "ns/svc=h", "ns/svc:x=h:1", "ns/svc=h:0", "ns/=h:1", "/s=h:1"]
)
def test_an_invalid_mapping_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="expected NAMESPACE/NAME"):
        parse_mapping(text)


def test_a_mapping_of_the_port_wins_over_one_of_the_service_and_over_objects() -> None:
    mappings = {
        ServiceKey("ns", "svc", None): HostPort("any", 1),
        ServiceKey("ns", "svc", 8443): HostPort("exact", 2),
    }

    assert resolve({"type": "ExternalName", "externalName": "x"}, mappings) == HostPort("exact", 2)


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        (None, HostPort("svc.ns.svc", 8443)),
        ({"type": "ExternalName", "externalName": "real.host"}, HostPort("real.host", 8443)),
        ({"clusterIP": "10.0.0.7", "ports": [{"port": 8443}]}, HostPort("10.0.0.7", 8443)),
        (
            {"type": "LoadBalancer", "clusterIP": "10.0.0.7", "ports": [{"port": 8443}]},
            HostPort("10.0.0.7", 8443),
        ),
        ({"ports": [{"port": 8443}]}, HostPort("svc.ns.svc", 8443)),
    ],
)
def test_service_objects_come_before_dns(spec: dict[str, Any] | None, target: HostPort) -> None:
    assert resolve(spec) == target


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"clusterIP": "None"}, 'cannot route to service with ClusterIP "None"'),
        ({"clusterIP": "10.0.0.7"}, 'no service port 8443 found for service "svc"'),
        ({"type": "Odd"}, 'unsupported service type "Odd"'),
    ],
)
def test_a_service_that_cannot_be_reached_says_why(spec: dict[str, Any], text: str) -> None:
    with pytest.raises(Unresolved, match=text):
        resolve(spec)
