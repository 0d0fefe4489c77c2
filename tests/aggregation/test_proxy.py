"""Requests that this server passes on: what the backend gets, and what the client gets back."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from instar.server.settings import AggregationSettings
from tests.aggregation.backend import Arrived, Backend, Wire, discovery
from tests.aggregation.support import APIS, add_service, api_service, register, remote, wait_for
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

GROUP = "echo.example.com"
HOME = f"/apis/{GROUP}/v1"
_OWN = ("audit-id", "cache-control", "x-kubernetes-pf-flowschema-uid", "date", "content-length")


class _Scripts:
    """What the backend does, by the end of the path."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.gone = threading.Event()

    def __call__(self, arrived: Arrived, wire: Wire) -> None:
        found = getattr(self, arrived.path.rpartition("/")[2].replace("-", "_"), None)
        if callable(found):
            found(arrived, wire)
        else:
            discovery(arrived, wire)

    def echo(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(
            201,
            arrived.body,
            "text/plain",
            Warning='299 - "careful"',
            X_Own="mine",
            Audit_Id="of-the-backend",
            Cache_Control="public, immutable",
            X_Kubernetes_PF_FlowSchema_UID="of-the-backend",
            Access_Control_Allow_Origin="*",
        )

    def redirect(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(301, b"", Location="https://elsewhere/")

    def hang(self, arrived: Arrived, wire: Wire) -> None:
        self.release.wait(20)

    def garbage(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(b"this is not HTTP\r\n\r\n")
        wire.cut()

    def half(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        wire.cut()

    def mute(self, arrived: Arrived, wire: Wire) -> None:
        wire.cut()

    def busy(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(503, b"later", "text/plain", Retry_After="7")

    def events(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        wire.send(b"6\r\nfirst\n\r\n")
        self.release.wait(20)
        wire.send(b"7\r\nsecond\n\r\n")
        if not wire.reader.read(1):
            self.gone.set()

    def flood(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n")
        for _ in range(50):
            wire.send(b"x" * 1_000_000)

    def refuse(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(403, b"no upgrade", "text/plain")

    def plain(self, arrived: Arrived, wire: Wire) -> None:
        wire.reply(200, b"no upgrade", "text/plain")

    def tunnel(self, arrived: Arrived, wire: Wire) -> None:
        wire.send(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
        )
        while data := wire.reader.read1(100):
            wire.send(data.upper())
        self.gone.set()


@pytest.fixture(scope="module")
def main() -> Iterator[LiveServer]:
    with live_server(request_timeout=60.0) as server:
        yield server


@pytest.fixture(scope="module")
def scripts() -> _Scripts:
    return _Scripts()


@pytest.fixture(scope="module")
def backend(main: LiveServer, scripts: _Scripts) -> Iterator[Backend]:
    with Backend(scripts) as backend:
        proxy = main.running.kubeconfig.parent / "front-proxy-ca.crt"
        backend.trust(proxy.read_bytes())
        register(main, backend, GROUP)
        yield backend
        scripts.release.set()


def _as_joe(**more: str) -> dict[str, str]:
    return {"Impersonate-User": "joe", "Impersonate-Group": "system:masters", **more}


def test_any_method_and_any_path_below_goes_through(main: LiveServer, backend: Backend) -> None:
    """Line 9."""
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        answer = main.request(method, f"{HOME}/a/b/c/d/echo", b"body")

        assert (answer.status, answer.body) == (201, b"body"), method
        assert backend.requests[-1].method == method


def test_a_path_that_the_backend_does_not_know_is_its_404(
    main: LiveServer, backend: Backend
) -> None:
    """Line 9."""
    answer = main.request("GET", f"{HOME}/")

    assert backend.last(f"{HOME}/").method == "GET"
    assert answer.json["groupVersion"] == f"{GROUP}/v1"
    assert main.request("GET", f"/apis/{GROUP}/v2/things").status == 404


def test_the_backend_gets_the_user_that_this_server_has_recognised(
    main: LiveServer, backend: Backend
) -> None:
    """Lines 14 and 18."""
    forged = {
        "X-Remote-User": "evil",
        "X-Remote-Group": "evil",
        "X-Remote-Uid": "evil",
        "X-Remote-Extra-Evil": "evil",
        "X-Other": "kept",
        "User-Agent": "me/1",
        "Impersonate-Uid": "u-1",
        "Impersonate-Extra-Scopes%2fx": "deep",
    }

    main.request("GET", f"{HOME}/who/echo", headers=_as_joe(**forged))

    came = backend.last(f"{HOME}/who/echo")
    assert came.all("X-Remote-User") == ["joe"]
    assert came.all("X-Remote-Group") == ["system:masters", "system:authenticated"]
    assert came.all("X-Remote-Uid") == ["u-1"]
    assert came.all("X-Remote-Extra-scopes%2fx") == ["deep"]
    assert came.all("X-Other") == ["kept"]
    assert came.all("User-Agent") == ["me/1"]
    assert "evil" not in str(came.headers)
    assert not [name for name, _ in came.headers if name.lower().startswith("impersonate")]
    assert came.one("Authorization") is None
    assert came.peer == "front-proxy-client"


def test_the_backend_is_told_where_the_request_came_from(
    main: LiveServer, backend: Backend
) -> None:
    """Lines 15 and 16."""
    headers = {"X-Forwarded-For": "192.0.2.1", "Audit-Id": "mine", "X-Forwarded-Host": "evil"}

    answer = main.request("GET", f"{HOME}/from/echo?z=1&a=2", headers=headers)

    came = backend.last(f"{HOME}/from/echo")
    host = f"localhost:{backend.port}"
    assert came.target == f"{HOME}/from/echo?a=2&z=1"
    assert came.all("Host") == [host]
    assert came.all("X-Forwarded-For") == ["192.0.2.1, 127.0.0.1"]
    assert came.all("X-Forwarded-Host") == [host]
    assert came.all("X-Forwarded-Proto") == ["https"]
    assert came.all("X-Forwarded-Uri") == [f"{HOME}/from/echo"]
    assert came.all("Audit-Id") == ["mine"]
    assert dict(answer.headers)["audit-id"] == "mine"


def test_the_certificate_is_asked_for_by_the_name_of_the_service(backend: Backend) -> None:
    """Line 17."""
    assert set(backend.names) == {"echo.default.svc"}


def test_no_header_comes_twice(main: LiveServer, backend: Backend) -> None:
    """Better than kube-apiserver, which sends four of them twice."""
    answer = main.request("POST", f"{HOME}/echo", b"x")

    names = [name.lower() for name, _ in answer.headers]
    assert [names.count(name) for name in _OWN] == [1] * len(_OWN)
    told = {name.lower(): value for name, value in answer.headers}
    assert told["cache-control"] == "public, immutable"
    assert told["warning"] == '299 - "careful"'
    assert told["x-own"] == "mine"
    assert "of-the-backend" not in told.values()
    assert "access-control-allow-origin" not in told


def test_a_user_without_rights_is_refused_here(main: LiveServer, backend: Backend) -> None:
    """Line 12."""
    before = len(backend.requests)

    answer = main.request(
        "GET", f"{HOME}/namespaces/d/things/a", headers={"Impersonate-User": "joe"}
    )

    assert answer.status == 403
    assert answer.json["message"] == (
        f'things.{GROUP} "a" is forbidden: User "joe" cannot get resource "things" in API group '
        f'"{GROUP}" in the namespace "d"'
    )
    assert not [one for one in backend.requests[before:] if "things" in one.path]


def test_a_name_that_is_no_header_value_is_not_sent(main: LiveServer, backend: Backend) -> None:
    """Line 14: nothing may add a header line of its own."""
    headers = _as_joe(**{"Impersonate-Extra-Note": "a\tb"})

    answer = main.request("GET", f"{HOME}/tab/echo", headers=headers)

    assert answer.status == 201
    assert backend.last(f"{HOME}/tab/echo").all("X-Remote-Extra-note") == ["a\tb"]


def test_bodies_larger_than_our_own_limit_go_through(main: LiveServer, backend: Backend) -> None:
    """Line 13."""
    body = b"y" * 8_000_000

    answer = main.request("POST", f"{HOME}/large/echo", body)

    assert answer.body == body


def test_a_body_without_a_length_stays_chunked(main: LiveServer, backend: Backend) -> None:
    """Line 13."""
    connection = main.connection()
    headers = {"Authorization": f"Bearer {main.token}"}

    connection.request(
        "POST",
        f"{HOME}/chunked/echo",
        body=iter([b"one", b"two"]),
        headers=headers,
        encode_chunked=True,
    )
    answer = connection.getresponse()

    assert answer.read() == b"onetwo"
    connection.close()


def test_redirects_are_refused(main: LiveServer, backend: Backend) -> None:
    """Line 21."""
    answer = main.request("GET", f"{HOME}/redirect")

    assert answer.status == 502
    assert answer.body == (
        b"the backend attempted to redirect this request, which is not permitted"
    )
    assert "location" not in {name.lower() for name, _ in answer.headers}


def test_redirects_pass_where_the_operator_allows_them(scripts: _Scripts) -> None:
    """Line 21."""
    allowed = AggregationSettings(refuse_redirects=False)
    with live_server(aggregation=allowed) as server, Backend(scripts) as other:
        register(server, other, GROUP)

        assert server.request("GET", f"{HOME}/redirect").status == 301


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
    main: LiveServer, backend: Backend, scripts: _Scripts
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
    main: LiveServer, backend: Backend, scripts: _Scripts
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
                )
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
