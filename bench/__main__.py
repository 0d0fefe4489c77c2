"""``python -m bench [--quick] [--record]``: prints one table, with ratios to the last record."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bench import micro
from bench.fixtures import BASE, CRDS, OTHER, crd
from bench.floor import floor
from bench.load import wrk
from bench.measure import Figures, Load, count, fill, list_all
from bench.process import scratch, serving

RECORD = Path(__file__).with_name("record.json")


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
        figures["objects"] = count(server)
        page = json.loads(server.call("GET", f"{BASE}?limit=1"))
        name = page["items"][0]["metadata"]["name"]
        figures |= load.reads(name)
        listed = json.loads(server.call("GET", f"{BASE}?limit=500"))["items"]
        figures |= load.patches([item["metadata"]["name"] for item in listed])
        figures["list all ms"] = list_all(server, BASE)
        figures["list all ms, other version"] = list_all(server, OTHER)
        figures["resident MB at end"] = server.resident_mb()
        small = server.call("GET", f"{BASE}/{name}")
        large = server.call("GET", f"{BASE}?limit=500")
        pki = folder / "bench.db.pki"
        if pki.exists():
            figures |= _floor(folder, small, large, pki, seconds)
    return figures


def _floor(folder: Path, small: bytes, large: bytes, pki: Path, seconds: int) -> Figures:
    with floor(folder, small, large, pki) as url:
        one = wrk(url + "/", "x", connections=32, seconds=seconds)
        page = wrk(url + "/?large", "x", connections=8, seconds=seconds)
    return {"floor: get/s": one.per_second, "floor: list 500/s": page.per_second}


def show(figures: Figures, record: Figures) -> None:
    width = max(map(len, figures))
    for name, value in figures.items():
        last = record.get(name)
        ratio = f"  {value / last:6.2f} × the record" if last else ""
        print(f"{name:{width}}  {value:12.1f}{ratio}")


if __name__ == "__main__":
    main()
