"""Baseline for watches: memory per idle connection and CPU per write of a bare TLS server.

``python -m bench.tlsfloor [--connections 500] [--bytes 1450] [--few 25] [--pause 0.01]``: a uvloop
protocol writes the same bytes to all connections, or to a ``few`` of them with a ``pause`` in
between, over plain TCP, over uvloop's TLS and over ours (``tls_transport.py``). The clients run in
a separate process and discard what they read.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import multiprocessing
import os
import random
import select
import socket
import ssl
import statistics
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import uvloop

from bench.process import scratch
from bench.watchload import many_files
from instar.server.files.certificates import ensure_certificates, server_context
from instar.server.http.tls_transport import TlsListener

_ROUNDS = 100


class _Idle(asyncio.Protocol):
    open: list[Any]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.open.append(transport)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.tlsfloor", description=__doc__)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--bytes", type=int, default=1450)
    parser.add_argument("--few", type=int, default=0, help="of them in each round; 0: all")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two rounds")
    options = parser.parse_args()
    many_files()
    print("| | memory of a connection | CPU of a write |")
    print("| --- | --- | --- |")
    for name in ("plain TCP", "uvloop's TLS", "our TLS"):
        # Each in a process of its own: memory given back is not seen.
        apart = multiprocessing.get_context("spawn").Process(
            target=_measured_apart, args=(name, options)
        )
        apart.start()
        apart.join()


def _measured_apart(name: str, options: argparse.Namespace) -> None:
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        memory, spent = runner.run(_measured(name, folder, options))
        print(f"| {name} | {memory:.1f} kB | {spent:.1f} µs |", flush=True)


async def _measured(name: str, folder: Path, options: argparse.Namespace) -> tuple[float, float]:
    _Idle.open = []
    count = options.connections
    context = server_context(ensure_certificates(folder, ["localhost"]), ())
    made: Callable[[], Any] = (
        TlsListener(lambda: context, lambda _: _Idle()) if name == "our TLS" else _Idle
    )
    theirs = context if name == "uvloop's TLS" else None
    loop = asyncio.get_running_loop()
    server = await loop.create_server(made, "127.0.0.1", 0, ssl=theirs, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    before, spawn = _resident(), multiprocessing.get_context("spawn")
    ready = spawn.Event()
    arguments = (port, count, name != "plain TCP", ready)
    client = spawn.Process(target=_drain, args=arguments, daemon=True)
    client.start()
    await asyncio.to_thread(ready.wait)
    while len(_Idle.open) < count:  # noqa: ASYNC110 (the last few are being accepted)
        await asyncio.sleep(0.05)
    gc.collect()
    memory = (_resident() - before) / count
    rounds = []
    for _ in range(_ROUNDS):
        few = random.sample(_Idle.open, options.few or count)
        rounds.append(await _round(few, os.urandom(options.bytes), options.pause))
    spent = statistics.median(rounds) if options.few else min(rounds)
    client.terminate()
    server.close()
    return memory, spent * 1e6


async def _round(receivers: list[Any], data: bytes, pause: float) -> float:
    """Return the CPU seconds per write."""
    began = time.process_time()
    for transport in receivers:
        transport.write(data)
    spent = (time.process_time() - began) / len(receivers)
    await asyncio.sleep(pause)
    return spent


def _resident() -> float:
    text = Path("/proc/self/status").read_text()
    return float(text.partition("VmRSS:")[2].split()[0])


def _drain(port: int, count: int, secure: bool, ready: Event) -> None:
    trusting = ssl._create_unverified_context()
    poll, sockets = select.epoll(), {}
    for _ in range(count):
        made = socket.create_connection(("127.0.0.1", port))
        made = trusting.wrap_socket(made) if secure else made
        made.setblocking(False)
        sockets[made.fileno()] = made
        poll.register(made.fileno(), select.EPOLLIN)
    ready.set()
    while True:
        for descriptor, _ in poll.poll():
            with contextlib.suppress(ssl.SSLWantReadError, BlockingIOError):
                if not sockets[descriptor].recv(1 << 16):
                    return


if __name__ == "__main__":
    main()
