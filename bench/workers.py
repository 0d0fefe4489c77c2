"""Measures the cost and gain of ``--workers``: start, memory, CPU per request, and the balance
between workers.

``python -m bench.workers [--workers 1 2 4] [--objects 20000] [--storage URL]``. The relevant figure
is CPU time per request, because the load generator uses the same cores: if N processes need as much
CPU per request as one did, and the load is balanced, a machine with N cores serves N times as many
requests. Memory is the proportional set size, in which shared pages count once. All steps read the
same objects; creates are measured last.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from bench.fixtures import BASE, CRDS, crd, thing
from bench.load import wrk
from bench.measure import Figures, fill
from bench.process import Measured, scratch, serving

_CONNECTIONS = 32


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.workers", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--storage", default="", help="default: a SQLite file")
    options = parser.parse_args()
    with scratch() as folder:
        storage = options.storage or f"sqlite:{folder}/bench.db"
        with serving(storage, folder) as server:
            server.call("POST", CRDS, crd())
            fill(server, options.objects)
        steps = {count: _reads(storage, folder, count, options) for count in options.workers}
        for count, figures in steps.items():
            figures |= _creates(storage, folder, count, options)
    print("| workers | " + " | ".join(map(str, steps)) + " |")
    print("| --- |" + " --- |" * len(steps))
    for name in next(iter(steps.values())):
        print(f"| {name} | " + " | ".join(f"{found[name]:.4g}" for found in steps.values()) + " |")


def _reads(storage: str, folder: Path, count: int, options: argparse.Namespace) -> Figures:
    figures: Figures = {"start s": 1e9}
    for _ in range(options.rounds):
        with serving(storage, folder, "--workers", str(count)) as server:
            figures["start s"] = min(figures["start s"], server.started_in)
    with serving(storage, folder, "--workers", str(count)) as server:
        _until_all_serve(server, count)
        processes = _processes(server.pid)
        figures["memory of all after the start, MB"] = sum(map(_proportional_mb, processes))
        name = json.loads(server.call("GET", f"{BASE}?limit=1"))["items"][0]["metadata"]["name"]
        _measure(figures, "get", server, f"{BASE}/{name}", options)
        _measure(figures, "list limit=500", server, f"{BASE}?limit=500", options)
        _measure(
            figures, "list by a label nobody has", server, f"{BASE}?labelSelector=a=b", options
        )
        figures["memory of all after that, MB"] = sum(map(_proportional_mb, processes))
        figures["the same as resident sets, MB"] = sum(map(_resident_mb, processes))
    return figures


def _creates(storage: str, folder: Path, count: int, options: argparse.Namespace) -> Figures:
    figures: Figures = {}
    with serving(storage, folder, "--workers", str(count)) as server:
        _until_all_serve(server, count)
        _measure(figures, "create", server, BASE, options, body=thing())
    return figures


def _until_all_serve(server: Measured, count: int) -> None:
    wanted = b"\ninstar_processes %d\n" % count
    while count > 1 and wanted not in server.call("GET", "/metrics").replace(b".0\n", b"\n"):
        server.pause(0.05)


def _measure(
    figures: Figures,
    what: str,
    server: Measured,
    path: str,
    options: argparse.Namespace,
    body: object = None,
) -> None:
    """Return the least of several rounds, because other load only adds to it."""
    best, share, rate = 1e9, 0.0, 0.0
    for _ in range(options.rounds):
        processes = _processes(server.pid)
        before = [_cpu_seconds(pid) for pid in processes]
        done = wrk(
            server.url + path,
            server.token,
            connections=_CONNECTIONS,
            seconds=options.seconds,
            method="GET" if body is None else "POST",
            body=body,
        )
        spent = [_cpu_seconds(pid) - was for pid, was in zip(processes, before, strict=True)]
        if done.errors:
            raise RuntimeError(f"{what}: {done.errors} errors")
        each = sum(spent) / done.requests * 1e6
        rate = max(rate, done.per_second)
        if each < best:
            best, share = each, max(spent) / sum(spent)
    figures[f"{what}, µs of CPU"] = best
    figures[f"{what}, share of the busiest"] = share
    figures[f"{what}, per s beside wrk"] = rate


def _processes(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def _proportional_mb(pid: int) -> float:
    return _kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss") / 1024


def _resident_mb(pid: int) -> float:
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmRSS") / 1024


def _kilobytes(file: Path, what: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1])
    return 0


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
