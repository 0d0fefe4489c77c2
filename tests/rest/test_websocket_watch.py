"""Watches over WebSocket, as browsers open them; the answers are those of kube-apiserver 1.36.4."""

from __future__ import annotations

import json
import socket
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.api.encoding.cbor_reading import read_cbor
from instar.server.http.websocket import NORMAL, PROTOCOL_ERROR, ClientFrames, frame
from tests.support.server import LiveServer, live_server

_MAPS = "/api/v1/namespaces/default/configmaps"
_WATCH = f"{_MAPS}?watch=1"
_SHORT = f"{_WATCH}&timeoutSeconds=1"
_CLOSE = (8, NORMAL.to_bytes(2))


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(storage="memory:") as running:
        yield running


def _open(server: LiveServer, path: str, **headers: str | None) -> ssl.SSLSocket:
    sent: dict[str, str | None] = {
        "Host": "localhost",
        "Connection": "keep-alive, Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Origin": "https://example.com",
        "Authorization": f"Bearer {server.token}",
    }
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in sent.items() if value is not None]
    context = ssl.create_default_context(cadata=server.ca.decode())
    context.check_hostname = False
    host, port = server.url.removeprefix("https://").rsplit(":", 1)
    made = context.wrap_socket(socket.create_connection((host, int(port)), timeout=30))
    made.sendall("\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode())
    return made


def _head(reader: Any) -> tuple[int, dict[str, str]]:
    status = int(reader.readline().split()[1])
    lines = iter(reader.readline, b"\r\n")
    pairs = (line.decode().rstrip().split(": ", 1) for line in lines)
    return status, {name.lower(): value for name, value in pairs}


def _frames(reader: Any) -> Iterator[tuple[int, bytes]]:
    """Frames until the server closes: opcode and payload."""
    while begin := reader.read(2):
        size = begin[1]
        if size > 125:
            size = int.from_bytes(reader.read(2 if size == 126 else 8))
        yield begin[0] & 15, reader.read(size)


def _masked(opcode: int, payload: bytes) -> bytes:
    mask = b"\x01\x02\x03\x04"
    body = bytes(one ^ mask[at % 4] for at, one in enumerate(payload))
    return bytes((0x80 | opcode, 0x80 | len(payload))) + mask + body


def test_each_event_is_a_text_message_and_the_end_a_close(server: LiveServer) -> None:
    names = ["one", "two"]
    for name in names:
        server.request("POST", _MAPS, {"metadata": {"name": name}, "data": {"k": "v" * 70_000}})

    with _open(server, _SHORT) as made, made.makefile("rb") as reader:
        status, headers = _head(reader)
        *events, last = _frames(reader)

    assert (status, headers["sec-websocket-accept"]) == (101, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    assert last == _CLOSE
    shown = [json.loads(payload) for opcode, payload in events if opcode == 1]
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in shown] == [
        ("ADDED", name) for name in names
    ]


def test_protobuf_events_are_binary_messages_without_a_length(server: LiveServer) -> None:
    path = "/api/v1/namespaces?watch=1&timeoutSeconds=1"
    accept = "application/vnd.kubernetes.protobuf"

    with _open(server, path, Accept=accept) as made, made.makefile("rb") as reader:
        _head(reader)
        *events, last = _frames(reader)

    assert last == _CLOSE
    assert {opcode for opcode, _ in events} == {2}
    assert all(payload.startswith(b"\x0a\x05ADDED\x12") for _, payload in events)


def test_cbor_events_are_binary_messages() -> None:
    path = "/api/v1/namespaces?watch=1&timeoutSeconds=1"

    with (
        live_server(cbor=True) as server,
        _open(server, path, Accept="application/cbor") as made,
        made.makefile("rb") as reader,
    ):
        _head(reader)
        *events, last = _frames(reader)

    assert last == _CLOSE
    assert len(events) > 1
    assert {opcode for opcode, _ in events} == {2}
    assert {read_cbor(payload)["type"] for _, payload in events} == {"ADDED"}


def test_an_event_comes_when_the_object_is_made_and_pings_are_answered(server: LiveServer) -> None:
    with _open(server, _WATCH) as made, made.makefile("rb") as reader:
        _head(reader)
        frames = _frames(reader)
        made.sendall(_masked(9, b"hi"))
        pong = next(each for each in frames if each[0] == 10)
        server.request("POST", _MAPS, {"metadata": {"name": "late"}})
        late = next(each for each in frames if b'"late"' in each[1])
        made.sendall(_masked(8, b"\x03\xe8"))
        rest = list(frames)

    assert pong == (10, b"hi")
    assert json.loads(late[1])["type"] == "ADDED"
    assert rest == [_CLOSE]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": None}, 403),
        ({"Sec_WebSocket_Protocol": "a, b"}, 400),
        ({"Sec_WebSocket_Version": "8"}, 400),
        ({"Sec_WebSocket_Version": None}, 400),
        ({"Sec_WebSocket_Key": None}, 400),
        ({"Authorization": None}, 403),
        ({"Connection": "keep-alive"}, 200),
    ],
)
def test_a_handshake_is_judged_as_upstream_judges_it(
    server: LiveServer, headers: dict[str, str | None], status: int
) -> None:
    with _open(server, _SHORT, **headers) as made, made.makefile("rb") as reader:
        assert _head(reader)[0] == status


def test_a_watch_that_cannot_begin_is_a_status(server: LiveServer) -> None:
    path = f"{_WATCH}&resourceVersion=abc"

    with _open(server, path) as made, made.makefile("rb") as reader:
        status, headers = _head(reader)
        told = json.loads(reader.read(int(headers["content-length"])))

    assert (status, told["kind"]) == (500, "Status")


def _token_protocol(token: str) -> str:
    text = urlsafe_b64encode(token.encode()).decode().rstrip("=")
    return f"base64url.bearer.authorization.k8s.io.{text}"


def test_a_token_may_come_as_a_subprotocol_beside_another(server: LiveServer) -> None:
    offered = f"{_token_protocol(server.token)}, chat"
    with (
        _open(server, _SHORT, Authorization=None, Sec_WebSocket_Protocol=offered) as made,
        made.makefile("rb") as reader,
    ):
        status, headers = _head(reader)

    assert (status, headers["sec-websocket-protocol"]) == (101, "chat")


@pytest.mark.parametrize(
    "offered",
    [
        "{token}",
        "{token}, {token}, chat",
        "base64url.bearer.authorization.k8s.io.%%%, chat",
        "base64url.bearer.authorization.k8s.io._w, chat",
        "base64url.bearer.authorization.k8s.io.d3Jvbmc, chat",
    ],
)
def test_a_bad_token_as_a_subprotocol_is_refused(server: LiveServer, offered: str) -> None:
    text = offered.format(token=_token_protocol(server.token))
    with (
        closing(_open(server, _SHORT, Authorization=None, Sec_WebSocket_Protocol=text)) as made,
        made.makefile("rb") as reader,
    ):
        assert _head(reader)[0] == 401


class _Client:
    """What the sink of a client's bytes says."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.codes: list[int] = []
        self.frames = ClientFrames(self.sent.append, self.codes.append)


@given(st.lists(st.binary(max_size=100), max_size=5), st.integers(1, 7))
def test_frames_are_read_alike_in_pieces_of_any_size(texts: list[bytes], size: int) -> None:
    whole = b"".join(_masked(1, text) + _masked(9, text) for text in texts) + _masked(8, b"")
    client = _Client()

    for at in range(0, len(whole), size):
        client.frames.take(whole[at : at + size])

    assert client.sent == [frame(10, text) for text in texts]
    assert client.codes == [NORMAL]


@given(st.binary(max_size=300))
def test_no_bytes_of_a_client_break_the_reader(data: bytes) -> None:
    client = _Client()

    client.frames.take(data)
    client.frames.end()

    assert client.codes in ([0], [NORMAL], [PROTOCOL_ERROR])


def test_a_large_message_is_dropped_without_being_held() -> None:
    client = _Client()
    client.frames.take(b"\x81\xff" + (1 << 40).to_bytes(8) + b"mask")

    for _ in range(100):
        client.frames.take(bytes(1 << 16))

    assert client.frames._unread == b""
    assert client.codes == []
