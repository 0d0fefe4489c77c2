"""Compares HTTP/2 with HTTP/1.1: the server's CPU per request and per event, its memory per watch.

``python -m bench.http2 [--requests 4000] [--watches 500] [--events 40] [--rounds 5]``

Runs a server with default settings (SQLite, TLS, token). Eight requests are in flight at a time, on
eight connections of HTTP/1.1 and as eight streams of one connection of HTTP/2, in alternating
rounds; the medians of the rounds are printed. Then so many watches are opened, each on a connection
of its own and all on one connection, each with a new server, and objects are created that every
watch is told of. Only the server's CPU is counted, so that the client does not matter.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import ssl
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol
from urllib.parse import urlsplit

from bench.fixtures import BASE, CRDS, crd, thing
from bench.process import TRUSTING, Measured, scratch, serving
from bench.watchload import MARK, many_files, watch_path
from instar.base.http2 import frames
from instar.base.http2.hpack import literal

_IN_FLIGHT = 8
_READ = 1 << 18
_WINDOW = 1 << 30
_STEADY = 3
"""So many header fields are the same in every request."""
_INDEXED, _ADDED_TO_TABLE, _NEWEST = 0x80, 0x40, 62
"""First bytes of HPACK's forms, and the number of the last field that was added to its table."""


class Client(Protocol):
    def ask(self, method: str, path: str, bodies: Sequence[bytes]) -> None:
        """Send one request for each body and read all responses."""

    def watch(self, path: str) -> None:
        """Open one more watch."""

    def events(self) -> int:
        """Return how many events came since the last call."""

    def close(self) -> None:
        """Close all connections."""


class Http1:
    """A connection for each request in flight, and for each watch."""

    def __init__(self, server: Measured) -> None:
        self._server = server
        self._asking = [_dial(server, "http/1.1") for _ in range(_IN_FLIGHT)]
        self._watching: list[ssl.SSLSocket] = []
        self._poll = select.epoll()

    def ask(self, method: str, path: str, bodies: Sequence[bytes]) -> None:
        used = self._asking[: len(bodies)]
        for tls, body in zip(used, bodies, strict=True):
            tls.sendall(self._head(method, path, len(body)) + body)
        for tls in used:
            head, _, rest = _until(tls, b"\r\n\r\n").partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 20"):
                raise RuntimeError(head.decode())
            left = int(head.lower().split(b"content-length: ")[1].split()[0]) - len(rest)
            while left > 0:
                left -= len(tls.recv(_READ))

    def watch(self, path: str) -> None:
        tls = _dial(self._server, "http/1.1")
        tls.sendall(self._head("GET", path, 0))
        _until(tls, b"\r\n\r\n")
        tls.setblocking(False)
        self._watching.append(tls)
        self._poll.register(tls.fileno(), select.EPOLLIN)

    def events(self) -> int:
        by_number = {tls.fileno(): tls for tls in self._watching}
        return sum(_drained(by_number[number]) for number, _ in self._poll.poll(0.05))

    def close(self) -> None:
        for tls in [*self._asking, *self._watching]:
            tls.close()

    def _head(self, method: str, path: str, size: int) -> bytes:
        fields = [
            f"{method} {path} HTTP/1.1",
            "Host: x",
            *(f"{name}: {value}" for name, value in _fields(self._server, size)),
        ]
        return "\r\n".join([*fields, "", ""]).encode()


class Http2:
    """One connection, with a stream for each request and watch."""

    def __init__(self, server: Measured) -> None:
        self._server, self._next = server, 1
        self._remembered = False
        self._tls = _dial(server, "h2")
        wide = frames.settings({frames.INITIAL_WINDOW: _WINDOW}) + frames.window_update(0, _WINDOW)
        self._tls.sendall(frames.PREFACE + wide)
        self._unread = bytearray()

    def ask(self, method: str, path: str, bodies: Sequence[bytes]) -> None:
        self._tls.sendall(b"".join(self._request(method, path, body) for body in bodies))
        done = 0
        while done < len(bodies):
            read = self._tls.recv(_READ)
            if not read:
                raise EOFError(self._unread)
            self._unread += read
            done += self._ended()

    def watch(self, path: str) -> None:
        self._tls.setblocking(True)
        self._tls.sendall(self._request("GET", path, b""))
        while True:
            self._unread += self._tls.recv(_READ)
            if any(kind == frames.HEADERS for kind, _ in self._frames()):
                self._tls.setblocking(False)
                return

    def events(self) -> int:
        time.sleep(0.05)
        return _drained(self._tls)

    def close(self) -> None:
        self._tls.close()

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        stream, self._next = self._next, self._next + 2
        fields = _fields(self._server, len(body))
        block = b"".join(
            literal(name, value.encode())
            for name, value in ((b":method", method), (b":scheme", "https"), (b":path", path))
        )
        block += self._table(fields[:_STEADY])
        block += b"".join(literal(n.lower().encode(), v.encode()) for n, v in fields[_STEADY:])
        last = frames.END_HEADERS | (0 if body else frames.END_STREAM)
        sent = frames.frame(frames.HEADERS, last, stream, block)
        return sent + frames.frame(frames.DATA, frames.END_STREAM, stream, body) if body else sent

    def _table(self, fields: list[tuple[str, str]]) -> bytes:
        """Return short header fields that the server puts into its table, later their numbers."""
        if self._remembered:
            return bytes(_INDEXED | number for number in range(_NEWEST, _NEWEST + len(fields)))
        self._remembered = True
        block = b""
        for name, value in reversed(fields):
            texts = (name.lower().encode(), value.encode())
            block += bytes((_ADDED_TO_TABLE,)) + b"".join(bytes((len(t),)) + t for t in texts)
        return block

    def _ended(self) -> int:
        return sum(bool(flags & frames.END_STREAM) for kind, flags in self._frames() if kind <= 1)

    def _frames(self) -> list[tuple[int, int]]:
        """Take the whole frames that were read; return their kinds and flags."""
        found, at = [], 0
        while len(self._unread) - at >= frames.HEAD_SIZE:
            high, low, kind, flags, _ = frames.HEAD.unpack_from(self._unread, at)
            end = at + frames.HEAD_SIZE + (high << 16 | low)
            if end > len(self._unread):
                break
            found.append((kind, flags))
            at = end
        del self._unread[:at]
        return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.http2", description=__doc__)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--watches", type=int, default=500)
    parser.add_argument("--events", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    many_files()
    print("| | HTTP/1.1 | HTTP/2 |\n| --- | --- | --- |")
    _compare_requests(options)
    _compare_watches(options)


def _compare_requests(options: argparse.Namespace) -> None:
    with scratch() as folder, serving(f"sqlite:{folder}/bench.db", folder) as server:
        server.call("POST", CRDS, crd())
        name = json.loads(server.call("POST", BASE, thing()))["metadata"]["name"]
        with ExitStack() as stack:
            clients: list[Client] = [Http1(server), Http2(server)]
            for client in clients:
                stack.callback(client.close)
            for title, method, path in (
                ("get", "GET", f"{BASE}/{name}"),
                ("create", "POST", BASE),
                ("list of 500", "GET", f"{BASE}?limit=500"),
            ):
                many = options.requests // (20 if "list" in title else 1)
                body = json.dumps(thing()).encode() if method == "POST" else b""
                for flight in (1, _IN_FLIGHT):
                    spent = [
                        [
                            _spent(server, _asking(client, method, path, [body] * flight, many))
                            / many
                            for client in clients
                        ]
                        for _ in range(options.rounds)
                    ]
                    told = [statistics.median(times) * 1e6 for times in zip(*spent, strict=True)]
                    print(f"| {title}, {flight} in flight | {told[0]:.0f} µs | {told[1]:.0f} µs |")


def _asking(
    client: Client, method: str, path: str, bodies: list[bytes], many: int
) -> Callable[[], None]:
    def run() -> None:
        for _ in range(many // len(bodies)):
            client.ask(method, path, bodies)

    return run


def _compare_watches(options: argparse.Namespace) -> None:
    told = [_watched(make, options) for make in (Http1, Http2)]
    title = f"memory of each of {options.watches} watches"
    print(f"| {title} | {told[0][0]:.1f} kB | {told[1][0]:.1f} kB |")
    print(f"| CPU for each event of each watch | {told[0][1]:.1f} µs | {told[1][1]:.1f} µs |")


def _watched(
    make: Callable[[Measured], Client], options: argparse.Namespace
) -> tuple[float, float]:
    """Return the kilobytes of a watch and the microseconds of an event."""
    with scratch() as folder, serving(f"sqlite:{folder}/bench.db", folder) as server:
        server.call("POST", CRDS, crd())
        for _ in range(50):  # what is made once is made before
            server.call("POST", BASE, thing())
        alone = _spent(server, lambda: _create(server, options.events))
        revision = json.loads(server.call("GET", f"{BASE}?limit=1"))["metadata"]["resourceVersion"]
        client = make(server)
        before = server.resident_mb()
        for _ in range(options.watches):
            client.watch(watch_path(BASE, "", revision))
        taken = (server.resident_mb() - before) * 1024 / options.watches
        expected = options.watches * options.events

        def told() -> None:
            _create(server, options.events)
            _read_events(client, expected)

        spent = _spent(server, told) - alone
        client.close()
        return taken, spent * 1e6 / expected


def _create(server: Measured, count: int) -> None:
    body = thing()
    body["metadata"]["annotations"]["example.com/note"] = MARK.decode()
    for _ in range(count):
        server.call("POST", BASE, body)


def _read_events(client: Client, expected: int) -> None:
    seen = 0
    while seen < expected:
        seen += client.events()


def _spent(server: Measured, run: Callable[[], None]) -> float:
    before = server.cpu_seconds()
    run()
    return server.cpu_seconds() - before


def _fields(server: Measured, size: int) -> list[tuple[str, str]]:
    fields = [
        ("Authorization", f"Bearer {server.token}"),
        ("Accept", "application/json"),
        ("User-Agent", "bench/1.0"),
    ]
    return (
        [*fields, ("Content-Type", "application/json"), ("Content-Length", str(size))]
        if size
        else fields
    )


def _dial(server: Measured, protocol: str) -> ssl.SSLSocket:
    where = urlsplit(server.url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, TRUSTING.verify_mode
    context.set_alpn_protocols([protocol])
    plain = socket.create_connection((where.hostname or "", where.port or 0))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain)


def _until(tls: ssl.SSLSocket, end: bytes) -> bytes:
    read = b""
    while end not in read:
        more = tls.recv(_READ)
        if not more:
            raise EOFError(read.decode(errors="replace"))
        read += more
    return read


def _drained(tls: ssl.SSLSocket) -> int:
    found = 0
    try:
        while True:
            found += tls.recv(_READ).count(MARK)
    except ssl.SSLWantReadError:
        return found


if __name__ == "__main__":
    main()
