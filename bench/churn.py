"""Simulates a day of writes in a minute, to see whether the size of the store's file stays bounded.

``python -m bench.churn [--objects 10000] [--hours 24] [--rate 20]``: overwrites objects at a steady
rate, and deletes and creates some of them again. The compactor runs with a simulated clock. There
is no HTTP server; the store, its index and the compactor are the real ones.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from bench.process import scratch
from instar.wire.storage.compactor import Compactor
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Write

_TICK = 60.0
_AT_ONCE = 100
_DELETED = 0.1
_TABLE = ("hours", "writes", "file MB", "log MB, most", "free pages", "resident MB", "CPU s")


class ChurnedStore:
    """A store, its compactor and their simulated clock."""

    def __init__(self, path: Path, objects: int, size: int) -> None:
        self.path = path
        self.store = SqliteStore(str(path))
        self.now = 0.0
        self.compactor = Compactor(self.store, keep=300.0, clock=lambda: self.now)
        self.writes = 0
        self._size = size
        self._random = random.Random(1)
        self._revisions = dict.fromkeys((f"g.io/things/default/t{n}" for n in range(objects)), 0)
        self._names = list(self._revisions)

    async def fill(self) -> None:
        for start in range(0, len(self._names), _AT_ONCE):
            await asyncio.gather(*map(self._write, self._names[start : start + _AT_ONCE]))

    async def tick(self, writes: int) -> int:
        """Simulate one minute; return the largest size of the write-ahead log in it."""
        largest = 0
        for start in range(0, writes, _AT_ONCE):
            chosen = self._random.sample(self._names, min(_AT_ONCE, writes - start))
            await asyncio.gather(*map(self._write, chosen))
            largest = max(largest, size_of(self.path, "-wal"))
        self.now += _TICK
        await self.compactor.tick()
        return max(largest, size_of(self.path, "-wal"))

    async def _write(self, key: str) -> None:
        expected = self._revisions[key]
        gone = bool(expected) and self._random.random() < _DELETED
        value = None if gone else os.urandom(self._size // 2).hex().encode()
        revision = await self.store.commit(Write(key, value, expected))
        self._revisions[key] = 0 if gone else revision
        self.writes += 1


def size_of(path: Path, suffix: str = "") -> int:
    try:
        return os.stat(f"{path}{suffix}").st_size
    except FileNotFoundError:
        return 0


def free_pages(path: Path) -> int:
    """Read the number of free pages from the file's header; only the store may open the
    database.
    """
    with open(path, "rb") as file:
        return int.from_bytes(file.read(40)[36:40], "big")


async def _run(options: argparse.Namespace, path: Path) -> None:
    day = ChurnedStore(path, options.objects, options.size)
    await day.fill()
    print(" | ".join(f"{name:>12}" for name in _TABLE))
    largest = 0
    ticks = int(options.hours * 3600 / _TICK)
    for number in range(ticks + 1):
        if number % max(1, ticks // 12) == 0:
            _print_row(day, number * _TICK / 3600, largest)
            largest = 0
        largest = max(largest, await day.tick(int(options.rate * _TICK)))
    await day.store.close()
    with closing(sqlite3.connect(path)) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM log").fetchone()
    print(f"{rows} rows in a file of {size_of(path) / 1e6:.1f} MB at the end")


def _print_row(day: ChurnedStore, hours: float, largest: int) -> None:
    row = (
        f"{hours:.1f}",
        f"{day.writes}",
        f"{size_of(day.path) / 1e6:.1f}",
        f"{largest / 1e6:.1f}",
        f"{free_pages(day.path)}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
        f"{time.process_time():.0f}",
    )
    print(" | ".join(f"{cell:>12}" for cell in row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.churn", description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=1400)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--rate", type=float, default=20.0)
    options = parser.parse_args()
    with scratch() as folder:
        asyncio.run(_run(options, folder / "churn.db"))


if __name__ == "__main__":
    main()
