"""Measures how memory, start time and request cost grow with the number of objects and of CRDs.

``python -m bench.growth [--objects 1000 10000 100000] [--crds 1 10 200]``: one server with default
settings (SQLite, TLS, token) is filled step by step, restarted, and measured at each step.
"""

from __future__ import annotations

import argparse
import json
from contextlib import AbstractContextManager
from pathlib import Path

from bench.fixtures import BASE, CRDS, crd, thing
from bench.measure import Figures, Load, fill, list_all
from bench.process import Measured, scratch, serving


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--objects", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--crds", type=int, nargs="*", default=[1, 10, 200])
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    if options.objects:
        _table("objects", dict(_objects(options)))
    if options.crds:
        _table("CRDs", dict(_crds(options)))


def _objects(options: argparse.Namespace) -> list[tuple[int, Figures]]:
    steps = []
    with scratch() as folder:
        with _server(folder) as server:
            server.call("POST", CRDS, crd())
        with _server(folder) as server:
            empty = server.resident_mb()
        for step in sorted(options.objects):
            with _server(folder) as server:
                fill(server, step)
            with _server(folder) as server:
                figures = {"restart s": server.started_in} | _memory(server, empty)
                steps.append((step, figures | _requests(server, options.seconds)))
    return steps


def _crds(options: argparse.Namespace) -> list[tuple[int, Figures]]:
    steps = []
    for step in sorted(options.crds):
        with scratch() as folder:
            with _server(folder) as server:
                for number in range(step):
                    server.call("POST", CRDS, _numbered(number))
                fill(server, 1_000)
            with _server(folder) as server:
                figures = {"restart s": server.started_in, "resident MB": server.resident_mb()}
                steps.append((step, figures | _requests(server, options.seconds)))
    return steps


def _server(folder: Path) -> AbstractContextManager[Measured]:
    return serving(f"sqlite:{folder}/bench.db", folder)


def _memory(server: Measured, empty: float) -> Figures:
    """Return the resident memory per byte of stored JSON."""
    whole = len(server.call("GET", BASE)) / 1e6
    return {
        "JSON MB": whole,
        "resident MB": server.resident_mb(),
        "resident MB over an empty server, per MB of JSON": (server.resident_mb() - empty) / whole,
    }


def _requests(server: Measured, seconds: int) -> Figures:
    load = Load(server, seconds)
    page = json.loads(server.call("GET", f"{BASE}?limit=1"))
    figures = load.reads(page["items"][0]["metadata"]["name"])
    figures["list all ms"] = list_all(server, BASE)
    figures |= load.patches([item["metadata"]["name"] for item in _some(server)])
    return figures | load.measure("create, 32 connections", BASE, 32, "POST", thing())


def _some(server: Measured) -> list[dict[str, dict[str, str]]]:
    found: list[dict[str, dict[str, str]]] = json.loads(server.call("GET", f"{BASE}?limit=500"))[
        "items"
    ]
    return found


def _numbered(number: int) -> dict[str, object]:
    """Return a CRD with a numbered name. Only the first one is measured."""
    return crd(f"others{number}", f"Other{number}") if number else crd()


def _table(what: str, steps: dict[int, Figures]) -> None:
    print(f"| {what} | " + " | ".join(f"{step:,}".replace(",", " ") for step in steps) + " |")
    print("| --- |" + " --- |" * len(steps))
    for name in next(iter(steps.values())):
        cells = " | ".join(f"{figures[name]:.4g}" for figures in steps.values())
        print(f"| {name} | {cells} |")
    print()


if __name__ == "__main__":
    main()
