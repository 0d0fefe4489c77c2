"""Measures a server with many objects: restart time, latency meanwhile, and memory.

``python -m bench.million [--objects 1000 10000 100000 1000000] [--values memory disk]``: fills a
store file with rows as the server writes them (one object is created, the others are copies with
other names), then starts a server with default settings on it.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import ssl
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.request import Request, urlopen

from bench.fixtures import BASE, CRDS, OTHER, crd, thing
from bench.load import wrk
from bench.measure import Figures
from bench.process import Measured, scratch, serving

_INSERT = "INSERT INTO log(revision, key, value) VALUES (?, ?, ?)"
_ROWS = 10_000
_TRUSTING = ssl._create_unverified_context()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.million", description=__doc__)
    parser.add_argument("--objects", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--values", nargs="*", default=["memory", "disk"])
    parser.add_argument("--pack-values", choices=("auto", "off"), default="auto")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--file", type=Path, help="keep the file, and use it if it is there")
    options = parser.parse_args()
    for count in options.objects:
        with scratch() as folder:
            path = options.file or folder / "million.db"
            if not path.exists():
                fill(path, count)
            print(f"{count} objects, file of {path.stat().st_size / 1e6:.0f} MB", flush=True)
            for mode in options.values:
                for name, figure in measured(
                    path, folder, (mode, options.pack_values), options.seconds
                ):
                    print(f"  {mode:7} {name:44} {figure:10.4g}", flush=True)


def fill(path: Path, count: int) -> None:
    with scratch() as folder, serving(f"sqlite:{path}", folder) as server:
        server.call("POST", CRDS, crd())
        server.call("POST", BASE, thing())
    with closing(sqlite3.connect(path)) as connection, connection:
        (revision,) = connection.execute("SELECT max(revision) FROM log").fetchone()
        found = connection.execute("SELECT key, value FROM log WHERE key LIKE '%/default/ct-%'")
        key, value = found.fetchone()
        rows = copies(key, value, revision, count)
        while part := [row for row, _ in zip(rows, range(_ROWS), strict=False)]:
            connection.executemany(_INSERT, part)


def copies(key: str, value: bytes, revision: int, count: int) -> Iterator[tuple[int, str, bytes]]:
    """Yield copies of the object with other names and uids."""
    prefix, _, name = key.rpartition("/")
    match = re.search(rb'"uid":"([^"]+)"', value)
    assert match is not None
    uid = match.group(1)
    for number in range(1, count):
        other = f"ct-{number:07d}"
        changed = value.replace(name.encode(), other.encode())
        changed = changed.replace(uid, str(uuid.uuid4()).encode())
        yield revision + number, f"{prefix}/{other}", changed


def measured(
    path: Path, folder: Path, modes: tuple[str, str], seconds: int
) -> Iterator[tuple[str, float]]:
    began = time.perf_counter()
    with serving(
        f"sqlite:{path}", folder, "--values", modes[0], "--pack-values", modes[1]
    ) as server:
        yield "restart to ready, s", time.perf_counter() - began
        yield "CPU until then, s", server.cpu_seconds()
        time.sleep(2)
        yield "resident MB", server.resident_mb()
        page = json.loads(server.call("GET", f"{BASE}?limit=500"))
        name = page["items"][len(page["items"]) // 2]["metadata"]["name"]
        for what, target in (("get", BASE), ("get, other version", OTHER)):
            yield f"{what}, µs CPU", _cpu(server, f"{target}/{name}", 16, seconds)
        yield "list 500, µs CPU", _cpu(server, f"{BASE}?limit=500", 8, seconds)
        for what, target in (("first list", BASE), ("list", BASE), ("list, other", OTHER)):
            yield from _whole(server, what, target).items()
        time.sleep(1)
        yield "resident MB at the end", server.resident_mb()


def _cpu(server: Measured, path: str, connections: int, seconds: int) -> float:
    before = server.cpu_seconds()
    rate = wrk(server.url + path, server.token, connections=connections, seconds=seconds)
    return (server.cpu_seconds() - before) / max(1, rate.requests) * 1e6


def _whole(server: Measured, what: str, path: str) -> Figures:
    """Measure one list of all objects: its time, the peak memory, and the latency of other gets."""
    before, cpu, peak = server.resident_mb(), server.cpu_seconds(), [0.0]
    slowest, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.is_set():
            peak[0] = max(peak[0], server.resident_mb())
            began = time.perf_counter()
            server.call("GET", "/api/v1/namespaces/default")
            slowest[0] = max(slowest[0], time.perf_counter() - began)
            time.sleep(0.02)

    beside = threading.Thread(target=watch)
    beside.start()
    began, size = time.perf_counter(), 0
    headers = {"Authorization": f"Bearer {server.token}"}
    with urlopen(Request(server.url + path, headers=headers), context=_TRUSTING) as answer:
        while data := answer.read(1 << 20):
            size += len(data)
    took = time.perf_counter() - began
    over.set()
    beside.join()
    return {
        f"{what} of all, s": took,
        f"{what} of all, MB": size / 1e6,
        f"{what} of all, s of CPU": server.cpu_seconds() - cpu,
        f"{what} of all, resident MB more at its peak": peak[0] - before,
        f"{what} of all, longest wait of another get, ms": slowest[0] * 1e3,
    }


if __name__ == "__main__":
    main()
