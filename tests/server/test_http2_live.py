"""HTTP/2 over TLS and a real port: negotiation, many watches on one connection, the stop."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from instar.base.http2 import frames
from tests.support.http2_client import TlsClient
from tests.support.server import LiveServer, live_server

WATCHES = 500
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(bootstrap_objects=True) as server:
        yield server


def context_of(server: LiveServer, *protocols: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=server.ca.decode())
    context.set_alpn_protocols(list(protocols))
    return context


def address_of(server: LiveServer) -> tuple[str, int]:
    parts = urlsplit(server.url)
    return str(parts.hostname), int(parts.port or 0)


@contextmanager
def connected(server: LiveServer) -> Iterator[TlsClient]:
    with (
        socket.create_connection(address_of(server), 60) as plain,
        context_of(server, "h2").wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        assert tls.selected_alpn_protocol() == "h2"
        yield TlsClient(tls, server.token)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(("h2", "http/1.1"), "h2"), (("http/1.1", "h2"), "h2"), (("http/1.1",), "http/1.1")],
)
def test_the_version_is_negotiated_in_the_handshake(
    server: LiveServer, offered: tuple[str, ...], chosen: str
) -> None:
    with (
        socket.create_connection(address_of(server), 60) as plain,
        context_of(server, *offered).wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        assert tls.selected_alpn_protocol() == chosen


def test_500_watches_on_one_connection_get_every_event(server: LiveServer) -> None:
    with connected(server) as client:
        for number in range(WATCHES):
            client.ask(2 * number + 1, f"{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dx")
        for _ in range(WATCHES):
            assert client.status() == b"200"
        body = orjson.dumps({"metadata": {"name": "x"}})
        client.ask(2 * WATCHES + 1, CONFIG_MAPS, "POST", body)
        seen: dict[int, list[Any]] = {}
        while len(seen) <= WATCHES:
            frame = client.next(frames.DATA)
            seen.setdefault(frame.stream, []).append(orjson.loads(frame.payload))

    created = seen.pop(2 * WATCHES + 1)
    assert created[0]["metadata"]["name"] == "x"
    assert {event["type"] for events in seen.values() for event in events} == {"ADDED"}
    assert all(len(events) == 1 for events in seen.values())


def test_a_stop_ends_watches_and_says_goodbye() -> None:
    with ExitStack() as stack:
        server = stack.enter_context(live_server(bootstrap_objects=True, grace_seconds=30.0))
        with connected(server) as client:
            client.ask(1, f"{CONFIG_MAPS}?watch=true")
            assert client.status() == b"200"
            stopping = threading.Thread(target=stack.close)
            stopping.start()
            found = [client.next(frames.DATA, frames.GOAWAY)]
            while found[-1].kind != frames.GOAWAY:
                found.append(client.next(frames.DATA, frames.GOAWAY))
            with pytest.raises(EOFError):
                client.next(frames.HEADERS)
        stopping.join()

    assert [frame.flags for frame in found if frame.kind == frames.DATA][-1] == frames.END_STREAM
