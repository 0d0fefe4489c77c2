"""Fields of Services that depend on the type, as upstream's integration tests want them."""

from __future__ import annotations

from typing import Any

from tests.support.server import Answer, LiveServer

SERVICES = "/api/v1/namespaces/default/services"
TWO = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]


def make(server: LiveServer, name: str, **spec: Any) -> Any:
    made = server.request("POST", SERVICES, {"metadata": {"name": name}, "spec": spec})
    assert made.status == 201, made.text
    return made.json


def put(server: LiveServer, obj: Any) -> Answer:
    return server.request("PUT", f"{SERVICES}/{obj['metadata']['name']}", obj)


def node_ports(obj: Any) -> list[int]:
    return [port.get("nodePort", 0) for port in obj["spec"]["ports"]]


def test_node_ports_that_are_sent_stay_when_they_are_not_allocated_any_more(
    server: LiveServer,
) -> None:
    made = make(server, "kept", type="LoadBalancer", ports=TWO)
    first, second = node_ports(made)
    made["spec"]["allocateLoadBalancerNodePorts"] = False

    kept = put(server, made).json
    kept_ports = node_ports(kept)
    del kept["spec"]["ports"][0]["nodePort"]
    one_less = put(server, kept).json

    assert 0 not in (first, second)
    assert kept_ports == [first, second]
    assert node_ports(one_less) == [0, second]


def test_a_node_port_that_is_asked_for_is_taken_although_none_is_allocated(
    server: LiveServer,
) -> None:
    [port] = node_ports(make(server, "holder", type="NodePort", ports=[{"port": 80}]))
    body = {
        "metadata": {"name": "second"},
        "spec": {
            "type": "LoadBalancer",
            "allocateLoadBalancerNodePorts": False,
            "ports": [{"port": 80, "nodePort": port}],
        },
    }

    refused = server.request("POST", SERVICES, body)

    assert (refused.status, "provided port is already allocated" in refused.text) == (422, True)


def test_a_node_port_follows_the_name_of_its_port(server: LiveServer) -> None:
    made = make(server, "named", type="NodePort", ports=TWO)
    first, second = node_ports(made)
    made["spec"]["ports"] = [{"name": "b", "port": 90}, {"name": "a", "port": 91}]

    assert node_ports(put(server, made).json) == [second, first]


def test_an_external_name_has_no_internal_traffic_policy(server: LiveServer) -> None:
    made = make(
        server,
        "outside",
        type="ExternalName",
        externalName="example.com",
        internalTrafficPolicy="Cluster",
    )

    assert "internalTrafficPolicy" not in made["spec"]
