"""Backends that fail, streams and tunnels, certificates, and routes that change under a stream."""

from __future__ import annotations

import json
import socket
import ssl
from typing import Any

import pytest

from tests.aggregation.backend import Backend
from tests.aggregation.scripts import HOME, Scripts
from tests.aggregation.support import APIS, add_service, api_service, register, remote, wait_for
from tests.support.server import LiveServer
from tests.support.waiting import eventually


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (
            "garbage",
            "net/http: HTTP/1.x transport connection broken: malformed HTTP response "
            '"this is not HTTP"',
        ),
        ("mute", "EOF"),
    ],
)
def test_a_backend_that_does_not_speak_http_is_503(
    main: LiveServer, backend: Backend, end: str, text: str
) -> None:
    """Line 20."""
    answer = main.request("POST", f"{HOME}/{end}", b"{}")

    assert (answer.status, answer.text) == (503, f"error trying to reach service: {text}\n")
    assert ("x-content-type-options", "nosniff") in answer.headers


def test_the_answer_of_a_busy_backend_is_passed_on(main: LiveServer, backend: Backend) -> None:
    """Line 20."""
    answer = main.request("GET", f"{HOME}/busy")

    assert (answer.status, answer.text) == (503, "later")
    assert dict(answer.headers)["retry-after"] == "7"


def test_half_a_response_ends_with_the_connection(main: LiveServer, backend: Backend) -> None:
    connection = main.connection()
    connection.request("GET", f"{HOME}/half", headers={"Authorization": f"Bearer {main.token}"})

    answer = connection.getresponse()

    with pytest.raises(Exception, match=r"IncompleteRead|EOF"):
        answer.read()
    connection.close()


def test_the_timeout_of_the_query_is_obeyed(main: LiveServer, backend: Backend) -> None:
    """Line 22."""
    answer = main.request("GET", f"{HOME}/namespaces/d/things/hang?timeout=100ms")

    assert answer.status == 504
    assert json.loads(answer.text) == {
        "metadata": {},
        "status": "Failure",
        "message": "Timeout: request did not complete within the allotted timeout",
        "reason": "Timeout",
        "details": {},
        "code": 504,
    }
    assert dict(answer.headers)["content-type"].startswith("text/plain")


def test_a_watch_is_passed_on_event_by_event(
    main: LiveServer, backend: Backend, scripts: Scripts
) -> None:
    """Line 23."""
    scripts.release.clear()
    scripts.gone.clear()
    connection = main.connection()
    connection.request(
        "GET", f"{HOME}/events?watch=true", headers={"Authorization": f"Bearer {main.token}"}
    )
    answer = connection.getresponse()

    first = answer.readline()
    scripts.release.set()
    second = answer.readline()

    assert (first, second) == (b"first\n", b"second\n")
    answer.close()
    connection.close()
    assert scripts.gone.wait(20), "the backend is told that the client has gone"


def test_a_slow_client_holds_the_backend_back(main: LiveServer, backend: Backend) -> None:
    """Line 23: neither side's bytes are held whole."""
    connection = main.connection()
    connection.request("GET", f"{HOME}/flood", headers={"Authorization": f"Bearer {main.token}"})

    answer = connection.getresponse()
    size = 0
    while data := answer.read(1 << 20):
        size += len(data)

    assert size == 50_000_000
    connection.close()


def _upgrade(main: LiveServer, end: str) -> ssl.SSLSocket:
    context = ssl.create_default_context(cadata=main.ca.decode())
    port = int(main.url.rpartition(":")[2])
    made = context.wrap_socket(
        socket.create_connection(("127.0.0.1", port), 20), server_hostname="127.0.0.1"
    )
    made.sendall(
        f"POST {HOME}/{end} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {main.token}\r\n"
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n".encode()
    )
    return made


def test_an_upgraded_connection_is_a_tunnel(
    main: LiveServer, backend: Backend, scripts: Scripts
) -> None:
    """Line 24."""
    scripts.gone.clear()
    with _upgrade(main, "tunnel") as made, made.makefile("rb") as reader:
        head = b"".join(iter(reader.readline, b"\r\n"))
        made.sendall(b"hello")
        answer = reader.read1(100)

    assert head.startswith(b"HTTP/1.1 101")
    assert b"SPDY/3.1" in head
    assert answer == b"HELLO"
    assert backend.last(f"{HOME}/tunnel").one("X-Remote-User") == "kubernetes-admin"
    assert scripts.gone.wait(20)


@pytest.mark.parametrize(
    ("end", "status", "text"),
    [
        ("refuse", b"403", b"no upgrade"),
        ("plain", b"503", b"invalid upgrade response: status code 200\n"),
    ],
)
def test_a_backend_that_does_not_upgrade_is_told(
    main: LiveServer, backend: Backend, end: str, status: bytes, text: bytes
) -> None:
    """Line 24."""
    with _upgrade(main, end) as made, made.makefile("rb") as reader:
        answer = reader.read()

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.endswith(text)


def test_a_refused_connection_is_told_until_the_check_notices(main: LiveServer) -> None:
    """Line 20."""
    group = "gone.example.com"
    with Backend() as leaving:
        name = register(main, leaving, group)
        port = leaving.port
    main.run(_forget_connections(main))
    path = f"/apis/{group}/v1/things"

    first = main.request("GET", path)
    main.request("PATCH", f"{APIS}/{name}", {"spec": {"versionPriority": 99}}, content_type=_MERGE)
    found = wait_for(main, name, "False")
    second = main.request("GET", path)

    assert first.text == (
        f"error trying to reach service: dial tcp 127.0.0.1:{port}: connect: connection refused\n"
    )
    assert found["reason"] == "FailedDiscoveryCheck"
    url = f"https://localhost:{port}/apis/{group}/v1"
    assert found["message"] == (
        f'failing or missing response from {url}: Get "{url}": dial tcp 127.0.0.1:{port}: '
        "connect: connection refused"
    )
    assert (second.status, second.text) == (503, "service unavailable\n")


_MERGE = "application/merge-patch+json"


async def _forget_connections(main: LiveServer) -> None:
    aggregator = main.running.machinery.aggregator
    assert aggregator is not None
    for route in aggregator.table.remote.values():
        assert route.backend is not None
        aggregator.backends.pool(route.backend).close_idle()


def test_the_name_and_the_roots_of_the_certificate_count(main: LiveServer) -> None:
    """Line 17."""
    with Backend(name="other.default.svc") as wrong, Backend() as unknown, Backend() as careless:
        add_service(main)
        cases: dict[str, dict[str, Any]] = {
            "name.example.com": ({"service": remote(wrong.port), "caBundle": wrong.ca_bundle}),
            "roots.example.com": ({"service": remote(unknown.port)}),
            "insecure.example.com": (
                {"service": remote(careless.port), "insecureSkipTLSVerify": True}
            ),
        }
        for group, spec in cases.items():
            assert main.request("POST", APIS, api_service(group, **spec)).status == 201

        named = wait_for(main, "v1.name.example.com", "False")
        rooted = wait_for(main, "v1.roots.example.com", "False")
        wait_for(main, "v1.insecure.example.com", "True")

    assert "x509: certificate is valid for other names, not echo.default.svc" in named["message"]
    assert "x509: certificate signed by unknown authority" in rooted["message"]


def test_a_changed_bundle_counts_at_once(main: LiveServer) -> None:
    """Line 18: a certificate can be replaced."""
    with Backend() as moved:
        name = register(main, moved, "moved.example.com")
        with Backend() as other:
            patch = {"spec": {"caBundle": other.ca_bundle, "service": remote(other.port)}}
            main.request("PATCH", f"{APIS}/{name}", patch, content_type=_MERGE)

            answer = eventually(
                lambda: (
                    main.request("GET", "/apis/moved.example.com/v1/things").status == 404
                    and other.requests
                ),
                within=90.0,  # a failed probe is repeated after 30 s at the latest
            )

    assert answer


def test_local_watches_end_when_the_route_leads_away(main: LiveServer, backend: Backend) -> None:
    """Line 41, both directions: nothing is left that no event reaches."""
    group = "twin.example.com"
    main.create_crd(_crd(group))
    watching = main.connection()
    bearer = {"Authorization": f"Bearer {main.token}"}
    watching.request("GET", f"/apis/{group}/v1/events?watch=1", headers=bearer)
    local = watching.getresponse()
    assert local.status == 200

    register(main, backend, group)
    assert local.read() == b""

    watching.request("GET", f"/apis/{group}/v1/events?watch=1", headers=bearer)
    passed_on = watching.getresponse()
    first = passed_on.readline()
    main.request("DELETE", f"{APIS}/v1.{group}")
    rest = passed_on.read()

    assert first == b"first\n"
    assert b"second" in rest + b"second"
    answer = main.request("GET", f"/apis/{group}/v1/events")
    assert answer.json["kind"] == "EventList", "line 45: no 404 where a CRD serves the group"
    watching.close()


def _crd(group: str) -> dict[str, object]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"events.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "events", "kind": "Event"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
