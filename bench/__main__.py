"""``python -m bench [--quick] [--record]``: one table, with ratios to the last record."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

from bench import micro
from bench.fixtures import BASE, CRDS, OTHER, crd, thing
from bench.floor import floor
from bench.load import wrk
from bench.process import Measured, scratch, serving

RECORD = Path(__file__).with_name("record.json")
Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second per measurement")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--storage", default="", help="default: a fresh SQLite file")
    parser.add_argument("--record", action="store_true", help="keep the figures for comparison")
    options = parser.parse_args()
    figures = {f"µs: {name}": value for name, value in micro.run().items()}
    figures |= over_http(options.storage, 1 if options.quick else 5, options.objects)
    show(figures, json.loads(RECORD.read_text()) if RECORD.exists() else {})
    if options.record:
        RECORD.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")


def over_http(storage: str, seconds: int, objects: int) -> Figures:
    figures: Figures = {}
    with scratch() as folder, serving(storage or f"sqlite:{folder}/bench.db", folder) as server:
        figures["start s"] = server.started_in
        figures["resident MB at start"] = server.resident_mb()
        server.call("POST", CRDS, crd())
        load = Load(server, seconds)
        figures |= load.writes()
        fill(server, objects)
        figures["objects"] = _count(server)
        page = json.loads(server.call("GET", f"{BASE}?limit=1"))
        name = page["items"][0]["metadata"]["name"]
        figures |= load.reads(name)
        figures["list all ms"] = _list_all(server, BASE)
        figures["list all ms, other version"] = _list_all(server, OTHER)
        figures["resident MB at end"] = server.resident_mb()
        small = server.call("GET", f"{BASE}/{name}")
        large = server.call("GET", f"{BASE}?limit=500")
        pki = folder / "bench.db.pki"
        if pki.exists():
            figures |= _floor(folder, small, large, pki, seconds)
    return figures


class Load:
    """Requests a second, and the server's CPU for each: on a shared machine the steadier ruler."""

    def __init__(self, server: Measured, seconds: int) -> None:
        self._server = server
        self._seconds = seconds

    def writes(self) -> Figures:
        many = self.measure("create, 32 connections", BASE, 32, "POST", thing())
        return many | self.measure("create, 1 connection", BASE, 1, "POST", thing())

    def reads(self, name: str) -> Figures:
        figures = self.measure("get", f"{BASE}/{name}", 32)
        figures |= self.measure("get, other version", f"{OTHER}/{name}", 32)
        figures |= self.measure("list 500", f"{BASE}?limit=500", 8)
        figures |= self.measure("list 500, other version", f"{OTHER}?limit=500", 8)
        return figures | self.measure("list by label, none", f"{BASE}?labelSelector=app%3Dx", 8)

    def measure(
        self, name: str, path: str, connections: int, method: str = "GET", body: object = None
    ) -> Figures:
        server, before = self._server, self._server.cpu_seconds()
        rate = wrk(
            server.url + path,
            server.token,
            connections=connections,
            seconds=self._seconds,
            method=method,
            body=body,
        )
        spent = (server.cpu_seconds() - before) / max(1, rate.count) * 1e6
        return {f"{name} /s": rate.per_second, f"{name} µs CPU": spent}


def fill(server: Measured, objects: int) -> None:
    """Create until there are so many."""
    while _count(server) < objects:
        wrk(
            server.url + BASE,
            server.token,
            connections=32,
            seconds=1,
            method="POST",
            body=thing(),
        )


def _floor(folder: Path, small: bytes, large: bytes, pki: Path, seconds: int) -> Figures:
    with floor(folder, small, large, pki) as url:
        one = wrk(url + "/", "x", connections=32, seconds=seconds)
        page = wrk(url + "/?large", "x", connections=8, seconds=seconds)
    return {"floor: get/s": one.per_second, "floor: list 500/s": page.per_second}


def _count(server: Measured) -> int:
    answer = json.loads(server.call("GET", f"{BASE}?limit=1"))
    return 1 + int(answer["metadata"].get("remainingItemCount", 0))


def _list_all(server: Measured, path: str) -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        server.call("GET", path)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def show(figures: Figures, record: Figures) -> None:
    width = max(map(len, figures))
    for name, value in figures.items():
        last = record.get(name)
        ratio = f"  {value / last:6.2f} × the record" if last else ""
        print(f"{name:{width}}  {value:12.1f}{ratio}")


if __name__ == "__main__":
    main()
