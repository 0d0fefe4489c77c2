"""Logs, exec, attach, port-forward and proxied requests go to the kubelet that a Node names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.cli.main import main as instar
from instar.server.rest.pods.kubelet_requests import kubelet_address
from instar.server.settings import KUBELET_ADDRESS_TYPES, KubeletSettings
from tests.aggregation.backend import Arrived, Backend, Wire
from tests.support.server import Answer, LiveServer, live_server

_PODS = "/api/v1/namespaces/default/pods"


def _kubelet(arrived: Arrived, wire: Wire) -> None:
    """Answers logs with two chunks, and upgrades with a tunnel that shouts."""
    upgrade = arrived.one("upgrade")
    if upgrade is not None:
        lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", f"Upgrade: {upgrade}"]
        wire.send("\r\n".join([*lines, "", ""]).encode())
        while data := wire.reader.read1(100):
            wire.send(data.upper())
    else:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.send(head + b"4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n")


@pytest.fixture(scope="module")
def kubelet() -> Iterator[Backend]:
    with Backend(_kubelet, name="127.0.0.1") as backend:
        yield backend


@pytest.fixture(scope="module")
def server(kubelet: Backend) -> Iterator[LiveServer]:
    with live_server(storage="memory:") as running:
        _node(running, "real", kubelet.port)
        _pod(running, "p", "real", "one", "two")
        _pod(running, "single", "real", "only")
        yield running


def _node(server: LiveServer, name: str, port: int, address: str = "127.0.0.1") -> None:
    server.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    status = {
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    path = f"/api/v1/nodes/{name}/status"
    told = server.request("PATCH", path, {"status": status}, content_type=_MERGE)
    assert told.status == 200, told.text


_MERGE = "application/merge-patch+json"


def _pod(server: LiveServer, name: str, node: str, *containers: str) -> None:
    spec = {
        "nodeName": node,
        "containers": [{"name": each, "image": "x"} for each in containers],
    }
    assert server.request("POST", _PODS, {"metadata": {"name": name}, "spec": spec}).status == 201


def test_logs_come_from_the_kubelet_with_their_options(
    server: LiveServer, kubelet: Backend
) -> None:
    answer = server.request("GET", f"{_PODS}/p/log?container=two&tailLines=5&previous=true")
    asked = kubelet.requests[-1]

    assert (answer.status, answer.text) == (200, "one\ntwo\n")
    assert asked.target == "/containerLogs/default/p/two?previous=true&tailLines=5"
    assert asked.one("authorization") is None


def test_the_only_container_need_not_be_named(server: LiveServer, kubelet: Backend) -> None:
    server.request("GET", f"{_PODS}/single/log")
    named = kubelet.requests[-1].target
    refused = server.request("GET", f"{_PODS}/p/log")

    assert named == "/containerLogs/default/single/only"
    assert (refused.status, refused.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("protocol", ["SPDY/3.1", "websocket"])
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            "exec?container=one&command=sh&command=-c&stdin=true&stdout=true&tty=false",
            "/exec/default/p/one?input=1&output=1&command=sh&command=-c",
        ),
        ("attach?container=two&stderr=1", "/attach/default/p/two?error=1"),
        ("portforward?ports=80", "/portForward/default/p?port=80"),
    ],
)
def test_a_connection_that_changes_its_protocol_is_a_tunnel_to_the_kubelet(
    server: LiveServer, kubelet: Backend, asked: str, told: str, protocol: str
) -> None:
    connection = server.connection()
    connection.connect()
    wire = connection.sock
    lines = [
        f"POST {_PODS}/p/{asked} HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {server.token}",
        "Connection: Upgrade",
        f"Upgrade: {protocol}",
        "X-Stream-Protocol-Version: v4.channel.k8s.io",
    ]
    with wire, wire.makefile("rb") as reader:
        wire.sendall("\r\n".join([*lines, "", ""]).encode())
        head = list(iter(reader.readline, b"\r\n"))
        wire.sendall(b"hello")
        back = reader.read(5)

    arrived = kubelet.requests[-1]
    assert head[0].split()[1] == b"101"
    assert back == b"HELLO"
    assert arrived.target == told
    assert arrived.one("x-stream-protocol-version") == "v4.channel.k8s.io"


def test_a_node_without_a_kubelet_and_one_that_is_away_are_told_apart(server: LiveServer) -> None:
    server.request("POST", "/api/v1/nodes", {"metadata": {"name": "bare"}})
    _pod(server, "on-bare", "bare", "c")
    _node(server, "away", 1)
    _pod(server, "on-away", "away", "c")

    bare = server.request("GET", f"{_PODS}/on-bare/log")
    away = server.request("GET", f"{_PODS}/on-away/log")

    assert bare.status == 404
    assert away.status == 500
    assert away.json["message"] == (
        "Internal error occurred: error dialing backend: dial tcp 127.0.0.1:1: "
        "connect: connection refused"
    )


def test_a_proxied_request_does_not_reach_this_machine(server: LiveServer) -> None:
    answer = server.request("GET", "/api/v1/nodes/real/proxy/healthz")

    assert (answer.status, answer.json["message"]) == (400, "address not allowed")


def test_the_certificate_of_a_kubelet_is_verified_by_the_authority_that_is_given(
    kubelet: Backend, tmp_path: Path
) -> None:
    right, wrong = tmp_path / "right.pem", tmp_path / "wrong.pem"
    kubelet.authority.cert_pem.write_to_path(str(right))
    with Backend() as other:
        other.authority.cert_pem.write_to_path(str(wrong))

    def logs(authority: Path) -> Answer:
        settings = KubeletSettings(authority=authority)
        with live_server(storage="memory:", kubelets=settings) as server:
            _node(server, "real", kubelet.port)
            _pod(server, "p", "real", "c")
            return server.request("GET", f"{_PODS}/p/log")

    assert logs(right).text == "one\ntwo\n"
    assert logs(wrong).status == 500
    assert "certificate" in logs(wrong).json["message"]


_ADDRESSES = [
    {"type": "InternalIP", "address": "10.0.0.1"},
    {"type": "Hostname", "address": "n"},
]


@pytest.mark.parametrize(
    ("status", "types", "found"),
    [
        ({"addresses": _ADDRESSES}, KUBELET_ADDRESS_TYPES, None),
        ({"addresses": _ADDRESSES, "port": 10250}, KUBELET_ADDRESS_TYPES, ("n", 10250)),
        ({"addresses": _ADDRESSES, "port": 10250}, ("InternalIP",), ("10.0.0.1", 10250)),
        ({"addresses": _ADDRESSES, "port": 10250}, ("ExternalIP",), None),
        ({"addresses": _ADDRESSES, "port": 0}, KUBELET_ADDRESS_TYPES, None),
        ({"port": 10250}, KUBELET_ADDRESS_TYPES, None),
    ],
)
def test_the_preferred_address_of_a_node_with_a_port_is_used(
    status: dict[str, Any], types: tuple[str, ...], found: tuple[str, int] | None
) -> None:
    status = {**status}
    if "port" in status:
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": status.pop("port")}}

    assert kubelet_address({"status": status}, types) == found


@pytest.mark.parametrize(
    "flags",
    [
        ["--kubelet-client-key", "k.pem"],
        ["--kubelet-certificate-authority", "/does/not/exist.pem"],
        ["--kubelet-preferred-address-types", "InternalIP,Home"],
    ],
)
def test_flags_that_cannot_be_honoured_are_refused(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(instar(["serve", "--storage", "memory:", *flags]))

    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
