"""Measures the latency of one client's gets while other clients list everything, hold hundreds of
watches, or send requests as fast as they can as another user; and that of merge patches, alone and
during lists.

``--lists 1000`` measures one thing only: gets of one user while another keeps so many lists of 500
objects in flight, and alone, in turns. It prints both ratios, of time and of the server's CPU
between request and answer, and fails if ``--most`` is given and the ratio of the CPU is above it.

``python -m bench.fairness [--objects 10000] [--watchers 500] [--seconds 5] [--only writes]``
``python -m bench.fairness --lists 1000 [--turns 3] [--most 2]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import multiprocessing.synchronize
import os
import signal
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from bench.fixtures import BASE, CRDS, crd
from bench.get_delay import GetDelay, get_delay, median_of
from bench.load import Rate, wrk
from bench.measure import fill, patch_script
from bench.process import Measured, scratch, serving

_WRITES_PER_SECOND = 10
_CONNECTIONS = 200
_WRITERS = 32
_CALM, _FLOOD = "calm-token", "flood-token"


T = TypeVar("T")
Busy = Callable[[Measured, int, multiprocessing.synchronize.Event], None]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--only", default="", help="measure only what begins so")
    parser.add_argument("--lists", type=int, default=0, help="lists in flight of another user")
    parser.add_argument("--turns", type=int, default=3, help="measurements of --lists, and alone")
    parser.add_argument("--most", type=float, default=0, help="fail above this ratio of --lists")
    options = parser.parse_args()
    with scratch() as folder:
        users = folder / "users.csv"
        users.write_text(f"{_CALM},calm,1\n{_FLOOD},flood,2\n")
        flags = ("--token-auth-file", str(users), "--authorization", "AlwaysAllow")
        _measure(options, folder, *flags)


def _measure(options: argparse.Namespace, folder: Path, *flags: str) -> None:
    with serving(f"sqlite:{folder}/bench.db", folder, *flags) as server:
        server.call("POST", CRDS, crd())
        fill(server, options.objects)
        some = json.loads(server.call("GET", f"{BASE}?limit=500"))["items"]
        names = [item["metadata"]["name"] for item in some]
        if options.lists:
            _compare_with_lists(options, server, f"{BASE}/{names[0]}")
            return

        def gets() -> Rate:
            url = f"{server.url}{BASE}/{names[0]}"
            return wrk(url, _CALM, connections=1, seconds=options.seconds)

        def writes() -> Rate:
            script = patch_script(names, _CALM)
            return wrk(server.url, "", connections=_WRITERS, seconds=options.seconds, script=script)

        def show(what: str, measure: Callable[[], Rate], busy: Busy | None, count: int = 0) -> None:
            if what.startswith(options.only):
                _show(
                    what,
                    measure() if busy is None else _measure_during(measure, busy, server, count),
                )

        watching = f"{options.watchers} watch, {_WRITES_PER_SECOND} writes a second"
        show("gets alone", gets, None)
        show("gets, one lists everything in a loop", gets, _list_forever)
        show(f"gets, {watching}", gets, _watch_forever, options.watchers)
        show(f"gets, {_CONNECTIONS} connections of another user", gets, _flood, _CONNECTIONS)
        show(f"writes of {_WRITERS} connections alone", writes, None)
        show("writes, one lists everything in a loop", writes, _list_forever)


def _compare_with_lists(options: argparse.Namespace, server: Measured, path: str) -> None:
    """Measure gets alone and during lists in turns, so that a machine that becomes slower meanwhile
    is slower for both."""

    def gets() -> GetDelay:
        return get_delay(server, path, _CALM, options.seconds)

    alone, beside = [], []
    for _ in range(options.turns):
        alone.append(gets())
        beside.append(_measure_during(gets, _lists, server, options.lists))
    calm, slow = median_of(alone), median_of(beside)
    _show_delay("gets alone", calm)
    _show_delay(f"gets, another user's {options.lists} lists in flight", slow)
    ratio = slow.cpu / calm.cpu
    print(
        f"ratio of the medians: time {slow.time / calm.time:.2f}, server's CPU {ratio:.2f}; of the "
        f"means: time {slow.time_mean / calm.time_mean:.2f}, "
        f"server's CPU {slow.cpu_mean / calm.cpu_mean:.2f}"
    )
    if options.most and ratio > options.most:
        raise SystemExit(f"the CPU before an answer grew more than {options.most:g} times")


def _show_delay(what: str, delay: GetDelay) -> None:
    print(
        f"{what:48} median {delay.time:7.2f} ms, mean {delay.time_mean:7.2f}, 99th "
        f"{delay.time_p99:7.2f}   server's CPU {delay.cpu:6.2f} ms, mean {delay.cpu_mean:6.2f}, "
        f"99th {delay.cpu_p99:6.2f}   {delay.gets:.0f} gets",
        flush=True,
    )


def _show(what: str, rate: Rate) -> None:
    print(
        f"{what:48} median {rate.median_ms:7.2f} ms   99th {rate.p99_ms:7.2f} ms"
        f"   {rate.per_second:7.0f} /s",
        flush=True,
    )


def _measure_during(
    measure: Callable[[], T],
    busy: Busy,
    server: Measured,
    count: int,
) -> T:
    ready = multiprocessing.Event()
    other = multiprocessing.Process(target=busy, args=(server, count, ready), daemon=True)
    other.start()
    ready.wait(60)
    try:
        return measure()
    finally:
        _end(other)
        other.join()


def _end(other: multiprocessing.Process) -> None:
    """End the busy process, and the load generator that it has started in a group of its own."""
    try:
        os.killpg(other.pid or 0, signal.SIGTERM)
    except ProcessLookupError:
        other.terminate()


def _list_forever(server: Measured, count: int, ready: multiprocessing.synchronize.Event) -> None:
    while True:
        server.call("GET", BASE)
        ready.set()


def _lists(server: Measured, count: int, ready: multiprocessing.synchronize.Event) -> None:
    os.setpgid(0, 0)
    url = f"{server.url}{BASE}?limit=500"
    wrk(url, _FLOOD, connections=count, seconds=1)  # handshakes are not what is measured
    ready.set()
    while True:
        wrk(url, _FLOOD, connections=count, seconds=60)


def _flood(server: Measured, count: int, ready: multiprocessing.synchronize.Event) -> None:
    name = json.loads(server.call("GET", f"{BASE}?limit=1"))["items"][0]["metadata"]["name"]
    ready.set()
    while True:
        wrk(f"{server.url}{BASE}/{name}", _FLOOD, connections=count, seconds=2)


def _watch_forever(server: Measured, count: int, ready: multiprocessing.synchronize.Event) -> None:
    asyncio.run(_watch(server, count, ready))


async def _watch(server: Measured, count: int, ready: multiprocessing.synchronize.Event) -> None:
    opened = await asyncio.gather(*(_open(server) for _ in range(count)))
    drains = [asyncio.create_task(_drain(reader)) for reader in opened]
    ready.set()
    names = [
        item["metadata"]["name"]
        for item in json.loads(server.call("GET", f"{BASE}?limit=100"))["items"]
    ]
    turn = 0
    while drains:
        turn += 1
        path = f"{BASE}/{names[turn % len(names)]}"
        obj = json.loads(await asyncio.to_thread(server.call, "GET", path))
        obj["metadata"]["annotations"]["example.com/turn"] = f"{turn}-{time.time()}"
        await asyncio.to_thread(server.call, "PUT", path, obj)
        await asyncio.sleep(1 / _WRITES_PER_SECOND)


async def _open(server: Measured) -> asyncio.StreamReader:
    where = urlsplit(server.url)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=trusting)
    revision = json.loads(server.call("GET", f"{BASE}?limit=1"))["metadata"]["resourceVersion"]
    request = (
        f"GET {BASE}?watch=1&resourceVersion={revision} HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    )
    writer.write(request.encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


if __name__ == "__main__":
    main()
