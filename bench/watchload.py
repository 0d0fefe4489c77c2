"""Opens thousands of watches from separate processes at low CPU cost, with raw sockets and epoll.

``bench/watchers.py`` uses it. Each event contains the byte ``MARK`` once, so events are counted
without parsing. One connection in ``SAMPLED`` also checks the order and measures the delay of its
events.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import resource
import select
import socket
import ssl
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from urllib.parse import quote, urlsplit

from bench.process import Measured

MARK = b"~"
"""Occurs once in every event, as ``~number/nanoseconds/``, and nowhere else in the objects."""
SAMPLED = 50
_MARKED = re.compile(rb"~(\d+)/(\d+)/")
_DRAIN = 1 << 18


@dataclass
class Tally:
    """Counts of received events since the last call of ``tally``."""

    events: int = 0
    delays: list[float] = field(default_factory=list)
    """Milliseconds from the request of a write to its event, of the sampled watchers."""
    disorder: int = 0
    """Events of sampled watchers that came twice, or in another order than they were written."""
    ended: int = 0


class Watchers:
    """Watches that one child process holds."""

    def __init__(self, server: Measured, number: int) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        where = (server.url, server.token, number)
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_run, args=(theirs, *where), daemon=True)
        self._process.start()

    def open(self, paths: list[str]) -> None:
        self._pipe.send(paths)

    def opened(self) -> None:
        self._pipe.recv()

    def tally(self) -> Tally:
        self._pipe.send(None)
        told: Tally = self._pipe.recv()
        return told

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


def watch_path(base: str, selector: str, revision: str) -> str:
    chosen = f"&labelSelector={quote(selector)}" if selector else ""
    return f"{base}?watch=1&resourceVersion={revision}{chosen}"


def many_files() -> None:
    """Raise the limit of open files to the maximum; child processes inherit it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _run(pipe: Connection, url: str, token: str, number: int) -> None:
    loop = _Loop(url, token, number)
    while True:
        for descriptor, _ in loop.poll.poll(0.05):
            loop.drain(descriptor)
        while pipe.poll():
            paths = pipe.recv()
            if paths is None:
                pipe.send(loop.take())
                continue
            for path in paths:
                loop.open(path)
            pipe.send(os.getpid())


class _Loop:
    def __init__(self, url: str, token: str, number: int) -> None:
        where = urlsplit(url)
        self._address, self._token = (where.hostname or "", where.port or 0), token
        self._trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._trusting.check_hostname = False
        self._trusting.verify_mode = ssl.CERT_NONE
        self._open: dict[int, ssl.SSLSocket] = {}
        self._sampled: dict[int, bytes] = {}
        self._last: dict[int, int] = {}
        self._count = number
        self._buffer = bytearray(_DRAIN)
        self._tally = Tally()
        self.poll = select.epoll()

    def open(self, path: str) -> None:
        plain = socket.create_connection(self._address)
        tls = self._trusting.wrap_socket(plain)
        tls.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._token}\r\n"
            "Accept: application/json\r\nUser-Agent: bench/1.0\r\n\r\n".encode()
        )
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += tls.recv(1 << 12)
        tls.setblocking(False)
        descriptor = tls.fileno()
        self._open[descriptor] = tls
        if self._count % SAMPLED == 0:
            self._sampled[descriptor] = b""
        self._count += 1
        self.poll.register(descriptor, select.EPOLLIN)

    def drain(self, descriptor: int) -> None:
        tls, buffer = self._open[descriptor], self._buffer
        with contextlib.suppress(ssl.SSLWantReadError):
            while True:
                size = tls.recv_into(buffer)
                if not size:
                    self._end(descriptor)
                    return
                self._tally.events += buffer.count(MARK, 0, size)
                if descriptor in self._sampled:
                    self._sample(descriptor, bytes(buffer[:size]))

    def _sample(self, descriptor: int, data: bytes) -> None:
        now, text = time.monotonic_ns(), self._sampled[descriptor] + data
        end = 0
        for found in _MARKED.finditer(text):
            number, began = int(found[1]), int(found[2])
            end = found.end()
            self._tally.delays.append((now - began) / 1e6)
            self._tally.disorder += number <= self._last.get(descriptor, -1)
            self._last[descriptor] = number
        begun = text.find(MARK, end)  # an event may come in two pieces
        self._sampled[descriptor] = text[begun:] if begun >= 0 else b""

    def _end(self, descriptor: int) -> None:
        self._tally.ended += 1
        self.poll.unregister(descriptor)
        self._open.pop(descriptor).close()

    def take(self) -> Tally:
        taken, self._tally = self._tally, Tally()
        return taken
