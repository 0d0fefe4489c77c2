"""A watcher that does not read is cut off within bounds, and nobody else notices."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from instar.server.rest import watch_stream
from tests.support.server import LiveServer

MAPS = "/api/v1/namespaces/default/configmaps"
WRITES = 60
FILLING = "x" * 200_000


@contextmanager
def watching(server: LiveServer, revision: str) -> Iterator[ssl.SSLSocket]:
    """Little fits into the connection itself."""
    where = urlsplit(server.url)
    context = ssl.create_default_context(cadata=server.running.ca.decode())
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    plain.settimeout(30)
    plain.connect((where.hostname, where.port))
    with context.wrap_socket(plain, server_hostname=where.hostname) as tls:
        path = f"{MAPS}?watch=1&resourceVersion={revision}&timeoutSeconds=60"
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        tls.sendall(head.encode())
        yield tls


def lines_until(tls: ssl.SSLSocket, last: bytes) -> bytes:
    received = b""
    while last not in received[-300_000:]:
        data = tls.recv(1 << 20)
        if not data:
            break
        received += data
    return received


def test_a_watcher_that_does_not_read_is_disconnected_and_the_others_get_every_event(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_stream, "MAX_PENDING", 1 << 20)
    made = server.request("POST", MAPS, {"metadata": {"name": "large"}, "data": {"a": FILLING}})
    revision = made.json["metadata"]["resourceVersion"]

    with watching(server, revision) as slow, watching(server, revision) as quick:
        seen = b""
        for number in range(WRITES):
            patch = {"data": {"number": f"n{number}n"}}
            content = "application/merge-patch+json"
            done = server.request("PATCH", f"{MAPS}/large", patch, content_type=content)
            assert done.status == 200
            seen += lines_until(quick, b'"n%dn"' % number)
        with pytest.raises((OSError, EOFError)):
            _read_to_the_end(slow, b'"n%dn"' % (WRITES - 1))

    assert [seen.count(b'"n%dn"' % number) for number in range(WRITES)] == [1] * WRITES


def _read_to_the_end(tls: ssl.SSLSocket, last: bytes) -> None:
    received = lines_until(tls, last)
    assert last not in received
    raise EOFError
