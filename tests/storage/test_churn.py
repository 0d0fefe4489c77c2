"""A day of writes and compactions by a clock that jumps: the file stays as large as what is in it.

Others' stores have grown without end in such a day: ours must not, and its log neither.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from instar.wire.storage.compactor import Compactor
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Write

pytestmark = pytest.mark.anyio
_OBJECTS, _A_MINUTE = 200, 10
_VALUE = b"x" * 1400
_PAGE = 4096


class Churn:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = SqliteStore(str(path))
        self.now = 0.0
        self.compactor = Compactor(self.store, keep=300.0, clock=lambda: self.now)
        self._random = random.Random(7)
        self._revisions = dict.fromkeys((f"g.io/things/d/t{n}" for n in range(_OBJECTS)), 0)

    async def minutes(self, count: int) -> int:
        """The most that the write-ahead log measured."""
        largest = 0
        for _ in range(count):
            chosen = self._random.sample(sorted(self._revisions), _A_MINUTE)
            await asyncio.gather(*map(self._write, chosen))
            self.now += 60.0
            await self.compactor.tick()
            largest = max(largest, os.stat(f"{self.path}-wal").st_size)
        return largest

    async def fill(self) -> None:
        await asyncio.gather(*map(self._write, self._revisions))

    async def _write(self, key: str) -> None:
        expected = self._revisions[key]
        gone = bool(expected) and self._random.random() < 0.2
        value = None if gone else _VALUE
        revision = await self.store.commit(Write(key, value, expected))
        self._revisions[key] = 0 if gone else revision

    @property
    def pages(self) -> int:
        return os.stat(self.path).st_size // _PAGE


async def test_a_day_of_churn_leaves_the_file_as_large_as_an_hour_does(tmp_path: Path) -> None:
    churn = Churn(tmp_path / "s.db")
    await churn.fill()
    await churn.minutes(60)
    an_hour = churn.pages

    log = await churn.minutes(23 * 60)

    assert churn.pages <= an_hour * 1.25
    assert log <= 6 << 20
    kept = sum(churn.store.counts().values())
    assert kept <= _OBJECTS + 3 * 8 * _A_MINUTE
    assert churn.pages <= 2 * kept
    await churn.store.close()
    again = SqliteStore(str(churn.path))
    assert sum(again.counts().values()) == kept
    await again.close()


async def test_compacted_values_free_their_space(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    revision = 0
    for _ in range(40):
        revision = await store.commit(Write("g.io/things/d/large", b"y" * 200_000, revision))
        await store.compact(revision)
    assert os.stat(tmp_path / "s.db").st_size < 10 * 200_000
    await store.close()
