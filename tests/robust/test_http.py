"""What can be done to a connection, without a credential or with one."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.robust.conftest import THINGS, thing
from tests.robust.victim import Victim

ENDLESS = {
    "a header's value": (b"GET /livez HTTP/1.1\r\nX: ", b"y" * 65536),
    "a header's name": (b"GET /livez HTTP/1.1\r\nX", b"y" * 65536),
    "headers": (b"GET /livez HTTP/1.1\r\n", b"X: y\r\n" * 10_000),
    "a path": (b"GET /", b"a" * 65536),
    "a trailer's value": (
        b"POST /livez HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"y" * 65536),
    "trailers": (
        b"POST /livez HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 10_000),
    "a chunk's extension": (
        b"POST /livez HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"y" * 65536),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_head_is_refused(victim: Victim, name: str) -> None:
    opening, more = ENDLESS[name]
    before = victim.memory
    with victim.watched(), victim.dial() as tls:
        began = time.monotonic()
        tls.sendall(opening)
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 60:
                tls.sendall(more)
                time.sleep(0.002)  # it may take a moment to be noticed
            pytest.fail("the connection was not cut off")
        assert victim.memory - before < 50 << 20


def test_thousands_of_pipelined_requests_do_not_hold_the_event_loop(victim: Victim) -> None:
    """In one turn of the loop they took 12 s of it."""
    tiny = b"GET /a HTTP/1.1\r\n\r\n" * 13_000

    def send(at: int) -> bytes:
        answer = b""
        with victim.dial() as tls, contextlib.suppress(OSError):
            tls.sendall(tiny)
            while len(answer) < 1 << 20:
                answer += tls.recv(1 << 16)
        return answer

    with victim.watched(), ThreadPoolExecutor(10) as senders:
        answers = list(senders.map(send, range(10)))
    assert all(answer.count(b"HTTP/1.1 403 ") > 1000 for answer in answers)


def test_a_drop_now_and_then_does_not_lengthen_a_deadline() -> None:
    from instar.server.http.http1_request import RequestReader

    class Owner:
        def full(self) -> bool:
            return False

        def __getattr__(self, name: str) -> object:
            return lambda *given: True

    reader = RequestReader(Owner())  # type: ignore[arg-type]
    now = time.monotonic()
    reader.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n")
    assert now + 30 < reader.deadline < now + 40
    reader.feed(b"\r\n1\r\nx\r\n0\r\n")
    first = reader.deadline
    reader.feed(b"X: y\r\n")
    assert reader.deadline == first < now + 100
    reader.feed(b"\r\n")
    assert not reader.reading


def test_a_credential_in_a_trailer_is_ignored(victim: Victim) -> None:
    data = (
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        b"Connection: close\r\n\r\n2\r\n{}\r\n0\r\n"
        + f"Authorization: Bearer {victim.token}\r\n\r\n".encode()
    )
    assert victim.exchange(data).startswith(b"HTTP/1.1 403 ")


def test_a_body_behind_an_upgrade_is_not_the_next_request(victim: Victim) -> None:
    hidden = victim.head("GET /version HTTP/1.1") + b"\r\n"
    upgrade = ("Connection: Upgrade", "Upgrade: x")
    for framing in ((f"Content-Length: {len(hidden)}",), ("Transfer-Encoding: chunked",)):
        data = victim.head("POST /api HTTP/1.1", *upgrade, *framing) + b"\r\n" + hidden
        answer = victim.exchange(data, 1.0)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1
    data = victim.head("GET /api HTTP/1.1", *upgrade) + b"\r\n" + hidden
    assert victim.exchange(data, 1.0).count(b"HTTP/1.1 200 ") == 2


@pytest.mark.parametrize("target", ["https://anywhere:1/version", "HTTP://x/version?a=b"])
def test_whole_addresses_are_routed(victim: Victim, target: str) -> None:
    answer = victim.exchange(victim.head(f"GET {target} HTTP/1.1", "Connection: close") + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"gitVersion"' in answer


@pytest.mark.parametrize(
    ("header", "status"),
    [("Impersonate-User", 403), ("Impersonate-Group", 400), ("Impersonate-Uid", 400)],
)
def test_impersonation_never_gives_the_askers_own_rights(
    victim: Victim, header: str, status: int
) -> None:
    answer = victim.request("GET", "/api/v1/namespaces", headers={header: "nobody"})
    assert answer.status == status


def test_unread_responses_do_not_fill_memory(victim: Victim) -> None:
    for number in range(10):
        body = thing(f"big-{number}", free={"text": "x" * 1_000_000})
        assert victim.request("POST", THINGS, body).status == 201
    before = victim.memory
    with victim.watched(3.0), contextlib.ExitStack() as stack:
        for number in range(100):
            tls = stack.enter_context(victim.dial())
            accept = "Accept: application/yaml" if number % 10 == 0 else "Accept: application/json"
            tls.sendall(victim.head(f"GET {THINGS} HTTP/1.1", accept) + b"\r\n")
        assert victim.request("GET", f"{THINGS}?limit=1").status == 200
        assert victim.memory - before < 700 << 20
    for number in range(10):
        victim.request("DELETE", f"{THINGS}/big-{number}")


def test_a_client_that_sends_without_reading_does_not_fill_memory(victim: Victim) -> None:
    before = victim.memory
    asked = victim.head("GET /openapi/v2 HTTP/1.1") + b"\r\n"
    with victim.watched(), victim.dial() as tls:
        tls.settimeout(1.0)
        with contextlib.suppress(OSError):
            for _ in range(3000):
                tls.sendall(asked * 20)
        assert victim.memory - before < 100 << 20


def test_large_bodies_that_never_end_are_bounded_together() -> None:
    from instar.server.http.connections import ConnectionSet

    class Connection:
        def close_when_idle(self) -> bool:
            return True

        def close_if_stalled(self, now: float) -> None: ...

        def backlog(self) -> int:
            return 0

        def abort(self) -> None: ...

    one, two = Connection(), Connection()
    together = ConnectionSet(most_bodies=100)
    assert together.receives(one, 60)
    assert not together.receives(two, 60)
    together.received(one)
    assert together.receives(two, 60)


def test_the_slowest_reader_is_cut_off_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from instar.server.http import connections

    now = 0.0
    monkeypatch.setattr(connections, "monotonic", lambda: now)

    class Connection:
        aborted = False

        def close_when_idle(self) -> bool:
            return True

        def close_if_stalled(self, now: float) -> None: ...

        def backlog(self) -> int:
            return 0

        def abort(self) -> None:
            self.aborted = True

    slow, quick, late = Connection(), Connection(), Connection()
    together = connections.ConnectionSet(most_answers=100)
    assert together.answers(slow, 50)
    assert together.answers(quick, 50)
    now = 10.0
    together.sent(slow, 5)
    together.sent(quick, 40)
    assert together.answers(late, 50)
    assert (slow.aborted, quick.aborted) == (True, False)
    assert not together.answers(Connection(), 200), "nobody else is slow enough to go for it"
    assert together.answering == 100


def test_a_stop_does_not_wait_for_idle_connections(tmp_path: Path) -> None:
    victim = Victim(tmp_path)
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            connection = stack.enter_context(contextlib.closing(victim.connection()))
            connection.request("GET", "/livez")
            connection.getresponse().read()
        half = stack.enter_context(victim.dial())
        half.sendall(b"GET /livez HT")
        assert victim.stop() == 0


def test_a_killed_server_leaves_nothing_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from instar.server.files import temp_folder

    monkeypatch.setattr(temp_folder, "_YOUNG_SECONDS", -1.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned, foreign = tmp_path / "instar-abandoned", tmp_path / "instar-foreign"
    abandoned.mkdir()
    foreign.mkdir()
    (abandoned / ".lock-of-owner").touch()
    with temp_folder.temporary_folder() as first, temp_folder.temporary_folder() as second:
        temp_folder.clear_abandoned(tmp_path)
        assert first.is_dir()
        assert second.is_dir()
        assert not abandoned.exists()
    assert foreign.exists(), "not known to be ours"
    assert not first.exists()


def test_a_connection_may_be_half_open(victim: Victim) -> None:
    with victim.watched(), socket.create_connection(victim.address) as plain:
        plain.sendall(b"\x16\x03\x01")
        plain.shutdown(socket.SHUT_WR)
