"""The HTTP port against everything that is not HTTP, or too much of it: the process survives."""

from __future__ import annotations

import json
import random
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.support.server import LiveServer


def address(server: LiveServer) -> tuple[str, int]:
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


@contextmanager
def dial(server: LiveServer, timeout: float = 30.0) -> Iterator[ssl.SSLSocket]:
    """A connection whose later silence, not its handshake, is held to `timeout`."""
    context = ssl.create_default_context(cadata=server.running.ca.decode())
    host, port = address(server)
    with (
        socket.create_connection((host, port), timeout=30.0) as plain,
        context.wrap_socket(plain, server_hostname=host) as tls,
    ):
        tls.settimeout(timeout)
        yield tls


def read_all(tls: ssl.SSLSocket) -> bytes:
    received = b""
    try:
        while data := tls.recv(65536):
            received += data
    except (TimeoutError, OSError):
        pass
    return received


def exchange(server: LiveServer, data: bytes, timeout: float = 3.0) -> bytes:
    """What comes back until the server closes or is silent."""
    with dial(server, timeout) as tls:
        with suppress(OSError):
            tls.sendall(data)
        return read_all(tls)


def alive(server: LiveServer) -> None:
    assert server.request("GET", "/readyz").status == 200


def request(server: LiveServer, path: str = "/api", more: str = "", method: str = "GET") -> bytes:
    lines = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n{more}"
    return f"{lines}\r\n".encode()


MALFORMED = {
    "nonsense": b"\x00\x01\x02\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9\r\n",
    "no method": b"/api HTTP/1.1\r\n\r\n",
    "no version": b"GET /api\r\n\r\n",
    "wrong version": b"GET /api HTTP/9.9\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "bad header": b"GET /api HTTP/1.1\r\nno colon here\r\n\r\n",
    "space before colon": b"GET /api HTTP/1.1\r\nHost : x\r\n\r\n",
    "folded header": b"GET /api HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
    "control character in a header": b"GET /api HTTP/1.1\r\nX: \x00\r\n\r\n",
    "bad chunk size": b"POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
    "chunk longer than said": b"POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"1\r\nabc\r\n",
    "huge chunk size": b"POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"f" * 17
    + b"\r\n",
    "two lengths": b"POST /api HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunks": b"POST /api HTTP/1.1\r\nContent-Length: 3\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": b"POST /api HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    "length that is no number": b"POST /api HTTP/1.1\r\nContent-Length: ten\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_are_refused(server: LiveServer, name: str) -> None:
    answer = exchange(server, MALFORMED[name])
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403")), answer[:200]
    assert answer.count(b"HTTP/1.1 ") <= 1
    alive(server)


@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /api HTTP/1.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET /api HTTP/1.1\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
    ],
)
def test_huge_headers_are_refused_once(server: LiveServer, data: bytes) -> None:
    answer = exchange(server, data)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431"), answer[:200]
    assert answer.count(b"HTTP/1.1 ") <= 1
    alive(server)


def test_pipelined_requests_are_answered_in_order(server: LiveServer) -> None:
    paths = ["/api", "/nope", "/apis", "/api/v1/namespaces/default"] * 10
    last = request(server, "/version", "Connection: close\r\n")
    data = b"".join(request(server, path) for path in paths) + last
    answer = exchange(server, data, 10.0)
    statuses = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"404", b"200", b"200"] * 10 + [b"200"]


def test_more_pipelined_requests_than_the_limit_are_answered_in_order(server: LiveServer) -> None:
    """Heads and bodies that begin in one piece and end in another."""
    body = json.dumps({"metadata": {"name": "x" * 5000}})
    length = f"Content-Length: {len(body)}\r\n"
    refused = request(server, "/api/v1/namespaces", length, "POST") + body.encode()
    last = request(server, "/version", "Connection: close\r\n")
    data = (request(server, "/nope") + refused + request(server, "/api")) * 100 + last
    answer = exchange(server, data, 20.0)
    statuses = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"404", b"422", b"200"] * 100 + [b"200"]


def test_nothing_is_served_after_a_closing_answer(server: LiveServer) -> None:
    data = request(server, "/api", "Connection: close\r\n") + request(server) * 3
    answer = exchange(server, data)
    assert answer.count(b"HTTP/1.1 ") == 1


def test_an_upgrade_is_not_made(server: LiveServer) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"
    answer = exchange(server, request(server, "/api", upgrade))
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400"))
    assert answer.count(b"HTTP/1.1 ") == 1, answer[:600]
    answer = exchange(server, b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") <= 1
    alive(server)


def test_http_1_0_and_missing_hosts_are_served(server: LiveServer) -> None:
    answer = exchange(server, b"GET /version HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")


def test_expect_continue(server: LiveServer) -> None:
    body = b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"expected"}}'
    head = request(
        server,
        "/api/v1/namespaces",
        f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n",
        "POST",
    )
    with dial(server) as tls:
        tls.sendall(head)
        assert tls.recv(100).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        tls.sendall(body)
        assert tls.recv(4096).startswith(b"HTTP/1.1 201 Created\r\n")


def test_a_body_in_odd_chunks(server: LiveServer) -> None:
    body = b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"chunked"}}'
    chunks = b"".join(b"1;ext=1\r\n%c\r\n" % byte for byte in body) + b"0\r\nTrailer: x\r\n\r\n"
    head = request(server, "/api/v1/namespaces", "Transfer-Encoding: chunked\r\n", "POST")
    with dial(server) as tls:
        for start in range(0, len(head + chunks), 7):
            tls.sendall((head + chunks)[start : start + 7])
        assert tls.recv(4096).startswith(b"HTTP/1.1 201 Created\r\n")


def test_a_body_far_over_the_limit_does_not_fill_memory(server: LiveServer) -> None:
    head = request(
        server, "/api/v1/namespaces", "Content-Length: 30000000\r\nConnection: close\r\n", "POST"
    )
    with dial(server) as tls:
        tls.sendall(head)
        for _ in range(300):
            tls.sendall(b" " * 100_000)
        assert tls.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_half_open_and_abandoned_connections_do_not_disturb_other_connections(
    server: LiveServer,
) -> None:
    kept = []
    for data in (b"", b"GET", b"GET /api HTTP/1.1\r\nHost:", request(server)[:-2]):
        plain = socket.create_connection(address(server), timeout=30)
        context = ssl.create_default_context(cadata=server.running.ca.decode())
        tls = context.wrap_socket(plain, server_hostname=address(server)[0])
        tls.sendall(data)
        kept.append(tls)
    body = request(server, "/api/v1/namespaces", "Content-Length: 100\r\n", "POST") + b"{"
    for _ in range(20):
        with dial(server) as tls:
            tls.sendall(body)
    alive(server)
    for tls in kept:
        tls.close()
    alive(server)


def test_clients_that_leave_in_the_middle_of_an_answer(server: LiveServer) -> None:
    for path in ("/openapi/v2", "/api/v1/namespaces?watch=1", "/apis"):
        for _ in range(5):
            with dial(server) as tls:
                tls.sendall(request(server, path))
    alive(server)


@pytest.mark.parametrize(
    "data",
    [b"GET /api HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\x00" * 99, b"\x80" * 64],
)
def test_connections_without_tls_are_closed(server: LiveServer, data: bytes) -> None:
    with socket.create_connection(address(server), timeout=30) as plain:
        plain.sendall(data)
        try:
            received = plain.recv(1000)
        except OSError:
            received = b""
        assert not received.startswith(b"HTTP/1.1 2")
    alive(server)


def test_a_stranger_s_tls_is_dropped(server: LiveServer) -> None:
    context = ssl.create_default_context()
    with (
        socket.create_connection(address(server), timeout=30) as plain,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(plain, server_hostname="elsewhere.example")
    alive(server)


def test_noise_is_survived(server: LiveServer) -> None:
    """Valid requests with bytes flipped, cut and doubled; then everything is as before."""
    chance = random.Random(7)
    seeds = [
        request(server),
        request(server, "/api/v1/namespaces", "Content-Length: 2\r\n", "POST") + b"{}",
        request(server, "/apis/x/v1/foos?watch=1&limit=5", "Accept: application/yaml\r\n"),
        request(server, "/api", "Transfer-Encoding: chunked\r\n", "PUT") + b"2\r\n{}\r\n0\r\n\r\n",
    ]
    for _ in range(100):
        data = bytearray(chance.choice(seeds) * chance.randint(1, 3))
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(data))
            match chance.randrange(3):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randint(1, 20)]
                case _:
                    data[at:at] = bytes(chance.randrange(256) for _ in range(4))
            if not data:
                data = bytearray(b"G")
        with dial(server, 0.05) as tls, suppress(OSError):  # half a request gets silence
            tls.sendall(bytes(data))
            tls.recv(4096)
    alive(server)
