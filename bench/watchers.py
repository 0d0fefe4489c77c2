"""Measures the cost of watches: the server's CPU per delivered event, and memory per idle watch.

``python -m bench.watchers [--watchers 1 100 1000 5000] [--selectors 1 20 200] [--rate 100]``

Runs a server with default settings (SQLite, TLS, token), patches at a steady rate over one
connection, and watches from other processes (``bench/watchload.py``). Watches without a selector
get every event; with 20 selectors each event matches a twentieth of them (``shard=k``), or all but
a twentieth (``--overlap``, ``shard!=k``). The cost of the patches themselves is measured
separately, by as many patches in a namespace without watches, in alternating rounds.
"""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import statistics
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.fixtures import BASE, CRDS, crd, thing
from bench.process import Measured, scratch, serving
from bench.watchload import Tally, Watchers, many_files, watch_path

_OBJECTS = 200
_PROCESSES = 2
_TURNS = 4
_ASIDE = BASE.replace("/default/", "/aside/")
"""Where nobody watches."""


@dataclass
class Step:
    watchers: int
    selectors: int
    overlap: bool = False


@dataclass
class Figures:
    idle_kb: float
    writes: int
    events: int
    spent_us: float
    """Server CPU of the run."""
    patches_us: float
    """Of as many patches that concern nobody."""
    delays: list[float]
    trouble: str


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.watchers", description=__doc__)
    parser.add_argument("--watchers", type=int, nargs="*", default=[1, 10, 100, 1_000, 5_000])
    parser.add_argument("--selectors", type=int, nargs="*", default=[20, 200])
    parser.add_argument("--overlap", action="store_true", help="selectors that leave out a share")
    parser.add_argument("--rate", type=float, default=100, help="patches a second")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    many_files()
    steps = [Step(count, 1) for count in options.watchers]
    most = max(options.watchers)
    steps += [Step(most, count, options.overlap) for count in options.selectors]
    print("| watchers | selectors | events | CPU per event | without patches | delay, p99 | idle |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for step in steps:
        _show(step, _measured(step, options))


def _show(step: Step, told: Figures) -> None:
    chosen = f"{step.selectors}{' (!=)' if step.overlap else ''}" if step.selectors > 1 else "none"
    less = (told.spent_us - told.patches_us) / max(1, told.events)
    delays = sorted(told.delays) or [0.0]
    middle, late = statistics.median(delays), delays[int(len(delays) * 0.99)]
    print(
        f"| {step.watchers} | {chosen} | {told.events} | "
        f"{told.spent_us / max(1, told.events):.1f} µs | {less:.1f} µs | "
        f"{middle:.1f}, {late:.1f} ms | {told.idle_kb:.1f} kB |{told.trouble}",
        flush=True,
    )


def _measured(step: Step, options: argparse.Namespace) -> Figures:
    with scratch() as folder, serving(f"sqlite:{folder}/bench.db", folder) as server:
        server.call("POST", CRDS, crd())
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "aside"}})
        for number in range(_OBJECTS):
            server.call("POST", BASE, _object(number, step.selectors))
            server.call("POST", _ASIDE, _object(number, step.selectors))
        _write(server, options.rate, 0.5, 0, _ASIDE)  # what is made once is made before
        loads = [Watchers(server, number) for number in range(_PROCESSES)]
        try:
            idle = _open(server, loads, step)
            return _run(server, loads, step, options, idle)
        finally:
            for load in loads:
                load.close()


def _open(server: Measured, loads: list[Watchers], step: Step) -> float:
    """Open all watches; return the kilobytes of server memory per watch."""
    listed = json.loads(server.call("GET", f"{BASE}?limit=1"))
    revision = listed["metadata"]["resourceVersion"]
    paths = [watch_path(BASE, _selector(number, step), revision) for number in range(step.watchers)]
    before = server.resident_mb()
    for number, load in enumerate(loads):
        load.open(paths[number :: len(loads)])
    for load in loads:
        load.opened()
    time.sleep(0.5)
    return (server.resident_mb() - before) * 1024 / max(1, step.watchers)


def _selector(number: int, step: Step) -> str:
    if step.selectors == 1:
        return ""
    return f"shard{'!=' if step.overlap else '='}{number // _PROCESSES % step.selectors}"


def _run(
    server: Measured,
    loads: list[Watchers],
    step: Step,
    options: argparse.Namespace,
    idle: float,
) -> Figures:
    for load in loads:
        load.tally()
    told = Tally()
    writes, expected, patches, spent = 0, 0, 0.0, 0.0
    for _ in range(_TURNS):
        before = server.cpu_seconds()
        _write(server, options.rate, options.seconds / _TURNS, 0, _ASIDE)
        between = server.cpu_seconds()
        made = _write(server, options.rate, options.seconds / _TURNS, 1_000_000 + writes)
        writes += made
        expected += _expected(made, step)
        deadline = time.monotonic() + 60
        while told.events < expected and time.monotonic() < deadline:
            time.sleep(0.2)
            for load in loads:
                _add(told, load.tally())
        patches += (between - before) * 1e6
        spent += (server.cpu_seconds() - between) * 1e6
    trouble = "" if told.events == expected else f" {expected} events expected"
    trouble += f" {told.disorder} out of order" if told.disorder else ""
    trouble += f" {told.ended} watches ended" if told.ended else ""
    return Figures(idle, writes, told.events, spent, patches, told.delays, trouble)


def _add(told: Tally, more: Tally) -> None:
    told.events += more.events
    told.delays += more.delays
    told.disorder += more.disorder
    told.ended += more.ended


def _expected(writes: int, step: Step) -> int:
    total = 0
    shards = [number // _PROCESSES % step.selectors for number in range(step.watchers)]
    for write in range(writes):
        mine = sum(shard == write % _OBJECTS % step.selectors for shard in shards)
        total += step.watchers - mine if step.overlap and step.selectors > 1 else mine
    return total


def _object(number: int, selectors: int) -> dict[str, object]:
    made = thing()
    made["metadata"]["name"] = f"o-{number}"
    made["metadata"]["labels"]["shard"] = str(number % selectors)
    return made


def _write(server: Measured, rate: float, seconds: float, first: int, where_to: str = BASE) -> int:
    """Send merge patches of an annotation at a steady rate; return their number."""
    where = urlsplit(server.url)
    trusting = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection(where.hostname or "", where.port, context=trusting)
    headers = {
        "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/merge-patch+json",
    }
    began, count = time.monotonic(), round(rate * seconds)
    for number in range(count):
        wait = began + number / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        mark = f"~{first + number}/{time.monotonic_ns()}/"
        body = json.dumps({"metadata": {"annotations": {"example.com/note": mark}}})
        connection.request("PATCH", f"{where_to}/o-{number % _OBJECTS}", body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"a patch was answered {answer.status}")
    connection.close()
    return count


if __name__ == "__main__":
    main()
