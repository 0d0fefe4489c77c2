"""Measures the memory of large objects: reports of 20 kB, before and after a list and a watch.

``python -m bench.reports [--objects 10000] [--pack-values off auto]``: fills a store file as
``bench.million`` does, starts a server on it, and reads its resident memory after a pause, after a
list of all objects, and after a watch with initial events.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sqlite3
import ssl
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from bench.fixtures import BASE, CRDS, crd, thing
from bench.measure import Figures
from bench.process import Measured, scratch, serving

_TRUSTING = ssl._create_unverified_context()
_INSERT = "INSERT INTO log(revision, key, value) VALUES (?, ?, ?)"
_WATCH = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
_END = b"k8s.io/initial-events-end"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.reports", description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--pause", type=float, default=75.0, help="seconds until memory is read")
    parser.add_argument("--flags", nargs="*", default=[""], help="one run of the server each")
    options = parser.parse_args()
    with scratch() as folder:
        path = folder / "reports.db"
        fill(path, options.objects)
        print(f"{options.objects} objects, file of {path.stat().st_size / 1e6:.0f} MB", flush=True)
        for flags in options.flags:
            for name, figure in measured(path, folder, flags.split(), options.pause):
                print(f"  {flags:20} {name:44} {figure:10.4g}", flush=True)


def fill(path: Path, count: int) -> None:
    with scratch() as folder, serving(f"sqlite:{path}", folder) as server:
        server.call("POST", CRDS, crd())
        server.call("POST", BASE, {**thing(), "status": status(random.Random(0))})
        server.call("POST", BASE, thing())
    with closing(sqlite3.connect(path)) as connection, connection:
        (revision,) = connection.execute("SELECT max(revision) FROM log").fetchone()
        found = connection.execute("SELECT key, value FROM log WHERE key LIKE '%/default/ct-%'")
        key, value = found.fetchone()
        connection.executemany(_INSERT, _reports(key, value, revision, count))


def _reports(key: str, value: bytes, revision: int, count: int) -> Iterator[tuple[int, str, bytes]]:
    prefix, _, name = key.rpartition("/")
    match = re.search(rb'"uid":"([^"]+)"', value)
    assert match is not None
    chance = random.Random(1)
    for number in range(1, count):
        other = f"ct-{number:07d}"
        obj = json.loads(value.replace(name.encode(), other.encode()))
        obj["metadata"]["uid"] = str(uuid.UUID(int=chance.getrandbits(128)))
        obj["status"] = status(chance)
        text = json.dumps(obj, separators=(",", ":"), sort_keys=True)
        yield revision + number, f"{prefix}/{other}", text.encode() + b"\n"


def status(chance: random.Random) -> dict[str, Any]:
    """Return a report as scanners of images write them: findings of a shared catalogue, some words
    in common, digests and scores of its own."""
    return {"findings": [_finding(chance) for _ in range(55)]}


def _finding(chance: random.Random) -> dict[str, Any]:
    number = chance.randrange(5_000)
    catalogue = random.Random(number)
    package = f"lib{catalogue.choice(_WORDS)}-{catalogue.choice(_WORDS)}"
    version = f"{catalogue.randrange(9)}.{catalogue.randrange(30)}.{catalogue.randrange(20)}"
    digest = hashlib.sha256(str(chance.getrandbits(64)).encode()).hexdigest()
    return {
        "id": f"CVE-{2015 + number % 11}-{1000 + number}",
        "package": package,
        "installedVersion": version,
        "fixedVersion": f"{version}-{catalogue.randrange(9)}",
        "severity": catalogue.choice(["LOW", "MEDIUM", "HIGH", "CRITICAL"]),
        "score": catalogue.randrange(100),
        "title": " ".join(catalogue.choice(_WORDS) for _ in range(9)),
        "link": f"https://vulnerabilities.example.com/CVE-{2015 + number % 11}-{1000 + number}",
        "layer": f"sha256:{digest[:32]}",
    }


_TEXT = """buffer overflow heap stack integer parser memory remote denial service crafted allows
attacker read write bounds free use after format string input file network kernel crypto image codec
archive session token header request shell command path traversal link"""
_WORDS = _TEXT.split()


def measured(
    path: Path, folder: Path, flags: list[str], pause: float
) -> Iterator[tuple[str, float]]:
    with serving(f"sqlite:{path}", folder, *flags) as server:
        yield "CPU of the start, s", server.cpu_seconds()
        yield "resident MB at once", server.resident_mb()
        server.pause(pause)
        yield "resident MB", server.resident_mb()
        for what, query in (("list", ""), ("watch-list", _WATCH), ("second watch-list", _WATCH)):
            yield from _read(server, what, query, pause).items()


def _read(server: Measured, what: str, query: str, pause: float) -> Figures:
    cpu = server.cpu_seconds()
    headers = {"Authorization": f"Bearer {server.token}"}
    request = Request(f"{server.url}{BASE}?{query}", headers=headers)
    size, peak, tail = 0, 0.0, b""
    with urlopen(request, context=_TRUSTING) as answer:
        while data := answer.read1(1 << 20):
            size += len(data)
            peak = max(peak, server.resident_mb())
            tail = tail[-len(_END) :] + data
            if _END in tail:
                break
        at_once = server.resident_mb()
        used = server.cpu_seconds() - cpu
        server.pause(pause)
        later = server.resident_mb()
    return {
        f"{what}, MB": size / 1e6,
        f"{what}, s of CPU": used,
        f"{what}, resident MB at its peak": peak,
        f"{what}, resident MB behind it": at_once,
        f"{what}, resident MB after the pause": later,
    }


if __name__ == "__main__":
    main()
