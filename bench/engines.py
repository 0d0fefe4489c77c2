"""``python -m bench.engines``: compares instar on SQLite, etcd and PostgreSQL, in turns.

Starts one server for each engine and asks each of them the same, one after the other, several times
over wrk (Debian's package). ``--events`` measures how long a write in one replica takes to reach a
watch in another one, and ``--ready N`` how long a server takes to start with N objects. A shared
machine makes rates vary by a factor of two, so compare the ratios and the CPU time per request.
``--realtime`` (for root) runs servers, engines and load in Linux's real-time class while
they are measured, so that other programs do not decide which engine waits. These programs wait
meanwhile: keep the turns short.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from bench.fixtures import BASE, CRDS, crd, thing
from bench.load import wrk
from bench.process import TRUSTING, Measured, cpu_seconds, etcd_process, scratch, serving
from instar.wire.storage.copy import copy_store
from instar.wire.storage.open import open_store
from tests.storage.postgres_server import postgres_node

_ENGINES = ("sqlite", "etcd", "postgres")


class EngineProcess(NamedTuple):
    url: str
    pids: Callable[[], list[int]]
    """Return the engine's own processes, the ended ones not."""
    cpu: Callable[[], float]
    """Return the CPU seconds of the engine's own processes."""


class LoadStep(NamedTuple):
    name: str
    connections: int
    method: str
    path: str
    seconds: int


@contextmanager
def engine(name: str, folder: Path) -> Iterator[EngineProcess]:
    """Run an engine with fsync on, as it comes."""
    if name == "sqlite":
        yield EngineProcess(f"sqlite:{folder}/{name}.db", list, lambda: 0.0)
    elif name == "etcd":
        with etcd_process() as (url, pid):
            yield EngineProcess(url, lambda: [pid], lambda: cpu_seconds(pid))
    else:
        with postgres_node({"shared_buffers": "'128MB'"}) as node:
            postmaster = int((node.data / "postmaster.pid").read_text().split()[0])
            yield EngineProcess(
                node.url(),
                lambda: [postmaster, *_children(postmaster)],
                lambda: _with_children(postmaster),
            )


def _children(pid: int) -> list[int]:
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def _with_children(pid: int) -> float:
    """Return the CPU seconds of a process and of its children, ended or not."""
    ended = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[13:15]
    return cpu_seconds(pid) + sum(map(cpu_seconds, _children(pid))) + sum(map(int, ended)) / 100


@contextmanager
def before_others(realtime: bool, running: EngineProcess, *servers: Measured) -> Iterator[None]:
    """Run the processes, and those that this one starts meanwhile, in the real-time class."""
    pids = [os.getpid(), *(server.pid for server in servers), *running.pids()] if realtime else []
    _schedule(pids, os.SCHED_RR, 1)
    try:
        yield
    finally:
        _schedule(pids, os.SCHED_OTHER, 0)


def _schedule(pids: list[int], policy: int, priority: int) -> None:
    for pid in pids:
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            with suppress(ProcessLookupError):
                os.sched_setscheduler(thread, policy, os.sched_param(priority))


def compare(names: list[str], rounds: int, seconds: int, realtime: bool) -> None:
    results: dict[str, dict[str, list[tuple[float, float, float, float]]]] = {}
    with ExitStack() as stack:
        servers: dict[str, tuple[EngineProcess, Measured]] = {}
        for name in names:
            folder = stack.enter_context(scratch())
            running = stack.enter_context(engine(name, folder))
            server = stack.enter_context(serving(running.url, folder))
            _prepare(server)
            servers[name] = running, server
        for turn in range(rounds):
            for name in names if turn % 2 == 0 else names[::-1]:
                running, server = servers[name]
                for step in _steps(server, seconds):
                    with before_others(realtime, running, server):
                        row = _measure(running, server, step)
                    results.setdefault(step.name, {}).setdefault(name, []).append(row)
            print(f"round {turn + 1} of {rounds}", flush=True)
    _report(results, names)


def _prepare(server: Measured) -> None:
    server.call("POST", CRDS, crd())
    server.pause(2.5)
    for number in range(500):
        created = thing()
        created["metadata"] = {**created["metadata"], "name": f"fixed-{number:03}"}
        created["metadata"].pop("generateName", None)
        server.call("POST", BASE, created)


def _steps(server: Measured, seconds: int) -> list[LoadStep]:
    return [
        LoadStep("create, 32 connections", 32, "POST", BASE, seconds),
        LoadStep("create, 1 connection", 1, "POST", BASE, seconds),
        LoadStep("get, 32 connections", 32, "GET", f"{BASE}/fixed-007", seconds),
        LoadStep("list limit=500, 8 connections", 8, "GET", f"{BASE}?limit=500", seconds),
    ]


def _measure(
    running: EngineProcess, server: Measured, step: LoadStep
) -> tuple[float, float, float, float]:
    """Return the rate, its p99 in ms, and µs of CPU a request in the server and in the engine."""
    before = server.cpu_seconds(), running.cpu()
    rate = wrk(
        server.url + step.path,
        server.token,
        connections=step.connections,
        seconds=step.seconds,
        method=step.method,
        body=thing() if step.method == "POST" else None,
    )
    assert not rate.errors, f"{step.name}: {rate.errors} errors"
    spent = server.cpu_seconds() - before[0], running.cpu() - before[1]
    return (
        rate.per_second,
        rate.p99_ms,
        *(1e6 * each / max(1, rate.requests) for each in spent),
    )  # type: ignore[return-value]


def _report(
    results: Mapping[str, Mapping[str, list[tuple[float, float, float, float]]]], names: list[str]
) -> None:
    for step, by_engine in results.items():
        print(f"\n{step}")
        for name in names:
            rows = by_engine[name]
            rate, p99 = (statistics.median(row[place] for row in rows) for place in (0, 1))
            ours, theirs = (min(row[place] for row in rows) for place in (2, 3))
            least, most = min(row[0] for row in rows), max(row[0] for row in rows)
            print(
                f"  {name:9} {rate:9.0f} /s ({least:.0f} to {most:.0f}), p99 {p99:6.1f} ms, CPU of "
                f"the server {ours:6.0f} µs, of the engine {theirs:6.0f} µs"
            )
        for name in names[:-1]:
            pairs = zip(by_engine["postgres"], by_engine[name], strict=True)
            ratios = sorted(mine[0] / other[0] for mine, other in pairs)
            told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"  postgres / {name}: median {statistics.median(ratios):.2f} of {told}")


# -- a write in one replica, its event in another ----------------------------------------------


def events(names: list[str], rounds: int, writes: int, realtime: bool) -> None:
    with ExitStack() as stack:
        pairs = {}
        for name in names:
            folder = stack.enter_context(scratch())
            running = stack.enter_context(engine(name, folder))
            pki = ("--cert-dir", str(folder / "pki"))
            one = stack.enter_context(serving(running.url, folder, *pki))
            folder = stack.enter_context(scratch())
            other = stack.enter_context(serving(running.url, folder, *pki))
            _prepare(one)
            pairs[name] = running, one, other
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in names:
                running, one, other = pairs[name]
                with before_others(realtime, running, one, other):
                    found[name] += _event_times(one, other, writes)
    for name in names:
        for what, column in (("sent", 0), ("acknowledged", 1)):
            times = sorted(row[column] for row in found[name])
            p50, p90, p99 = (times[int(len(times) * part)] for part in (0.5, 0.9, 0.99))
            print(
                f"{name:9} {what:>13} → event in the other replica: p50 {p50:.2f}, p90 {p90:.2f}, "
                f"p99 {p99:.2f}, most {times[-1]:.2f} ms of {len(times)}"
            )


def _event_times(one: Measured, other: Measured, writes: int) -> list[tuple[float, float]]:
    """Return for each write the ms from sending it, and from its answer, to its event."""
    seen: dict[str, float] = {}
    stamp = time.time_ns()
    last = f"e{stamp}-last"
    ready = threading.Event()

    def watch() -> None:
        connection = _connection(other)
        connection.request(
            "GET", f"{BASE}?watch=1&timeoutSeconds=60", headers=_headers(other, "application/json")
        )
        answer = connection.getresponse()
        ready.set()
        while last not in seen and (line := answer.readline()):
            now = time.perf_counter()
            seen[json.loads(line)["object"]["metadata"]["name"]] = now
        connection.close()

    reader = threading.Thread(target=watch)
    reader.start()
    ready.wait(30)
    connection, times = _connection(one), {}
    for number in range(writes):
        created = thing()
        name = last if number == writes - 1 else f"e{stamp}-{number}"
        created["metadata"] = {**created["metadata"], "name": name}
        created["metadata"].pop("generateName", None)
        body = json.dumps(created)
        began = time.perf_counter()
        connection.request("POST", BASE, body, _headers(one, "application/json"))
        answer = connection.getresponse()
        answer.read()
        times[name] = began, time.perf_counter()
        assert answer.status == 201
        time.sleep(0.005)
    connection.close()
    reader.join(30)
    return [
        ((seen[name] - began) * 1e3, max(0.0, (seen[name] - answered) * 1e3))
        for name, (began, answered) in times.items()
    ]


def _connection(server: Measured) -> http.client.HTTPSConnection:
    host, _, port = server.url.removeprefix("https://").rpartition(":")
    return http.client.HTTPSConnection(host, int(port), context=TRUSTING, timeout=60)


def _headers(server: Measured, content: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}", "Content-Type": content}


# -- a start with many objects -----------------------------------------------------------------


def ready(names: list[str], rounds: int, objects: int) -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        urls = {}
        for name in names:
            urls[name] = stack.enter_context(engine(name, folder)).url
        _fill(urls["sqlite"], folder, objects)
        for name in names:
            if name != "sqlite":
                asyncio.run(_copy(urls["sqlite"], urls[name]))
        print(f"{objects} objects are there", flush=True)
        for turn in range(rounds):
            for name in names:
                with scratch() as folder, serving(urls[name], folder) as server:
                    server.call("GET", f"{BASE}?limit=1")
                    print(
                        f"round {turn + 1}: {name:9} ready in {server.started_in:.2f} s, "
                        f"{server.cpu_seconds():.2f} s of CPU, {server.resident_mb():.0f} MB",
                        flush=True,
                    )


def _fill(url: str, folder: Path, objects: int) -> None:
    with serving(url, folder) as server:
        server.call("POST", CRDS, crd())
        server.pause(2.5)
        made = 0
        while made < objects:
            done = wrk(
                server.url + BASE,
                server.token,
                connections=32,
                seconds=5,
                method="POST",
                body=thing(),
            )
            made += done.requests


async def _copy(source: str, target: str) -> None:
    one, other = await open_store(source), await open_store(target)
    await copy_store(one, other)
    await one.close()
    await other.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", nargs="+", choices=_ENGINES, default=list(_ENGINES))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--events", type=int, default=0, metavar="WRITES", help="for each round")
    parser.add_argument("--ready", type=int, default=0, metavar="OBJECTS")
    parser.add_argument("--realtime", action="store_true")
    args = parser.parse_args()
    if args.events:
        shared = [name for name in args.engines if name != "sqlite"]
        events(shared, args.rounds, args.events, args.realtime)
    elif args.ready:
        ready(args.engines, args.rounds, args.ready)
    else:
        compare(args.engines, args.rounds, args.seconds, args.realtime)


if __name__ == "__main__":
    main()
