"""Failover for real: a primary killed with -9 under writes, its standby promoted, answers compared.

Used by ``test_postgres_failover.py`` for a few rounds and by hand for many:
``.venv/bin/python -m tests.storage.postgres_failover 20``. Killing processes on one machine loses
nothing by itself, because what was sent lies in a socket; so in every second round the link to the
standby is silent before the kill.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from instar.wire.storage.postgres.store import PostgresStore
from instar.wire.storage.postgres.url import parse_url
from instar.wire.storage.store import StoreError, Write
from tests.storage.postgres_server import USER, PostgresNode
from tests.storage.proxy import Proxy
from tests.storage.recorder import Recorder

_STORES, _WRITERS = 2, 4


@dataclass
class FailoverReport:
    acknowledged: dict[str, int] = field(default_factory=dict)
    unknown: int = 0
    lost: list[str] = field(default_factory=list)
    went_back: int = 0
    """Stores that noticed that their history was cut."""
    wrong: list[str] = field(default_factory=list)
    _progress: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, key: str, revision: int) -> None:
        self.acknowledged[key] = revision
        self._progress.set()

    async def more(self, count: int) -> None:
        """Wait until so many more writes are acknowledged."""
        goal = len(self.acknowledged) + count
        while len(self.acknowledged) < goal:
            self._progress.clear()
            await self._progress.wait()


class FailoverPair:
    """A primary and its standby, whose link goes through a proxy."""

    def __init__(self, folder: Path, synchronous: bool) -> None:
        self._folder, self._synchronous, self._made = folder, synchronous, 0
        self.primary = self._node()
        self.standby: PostgresNode
        self.link: Proxy

    def _node(self) -> PostgresNode:
        self._made += 1
        folder = self._folder / f"n{self._made}"
        folder.mkdir()
        return PostgresNode(folder)

    async def start(self) -> None:
        await asyncio.to_thread(self.primary.create)
        if self._synchronous:
            self.primary.configure(synchronous_standby_names="'standby'")
        await asyncio.to_thread(self.primary.start)
        await self.add_standby()

    async def add_standby(self) -> None:
        """Give the primary a new standby, and wait until it follows."""
        self.link = Proxy(self.primary.address)
        port = int((await self.link.start()).rpartition(":")[2])
        self.standby = self._node()
        await asyncio.to_thread(self.standby.copy_of, self.primary)
        source = f"'host=127.0.0.1 port={port} user={USER} application_name=standby'"
        self.standby.configure_last(primary_conninfo=source)
        await asyncio.to_thread(self.standby.start)
        query = "select count(*) from pg_stat_replication where state = 'streaming'"
        while await asyncio.to_thread(self.primary.sql, query) != "1":  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def fail_over(self, silent: float) -> None:
        """Kill the primary, after the link was silent for a while, and promote the standby."""
        if silent:
            self.link.swallow_answers = True
            await asyncio.sleep(silent)
        await asyncio.to_thread(self.primary.kill)
        await self.link.stop()
        await asyncio.to_thread(self.standby.promote)
        self.primary = self.standby

    def url(self, schema: str, *nodes: PostgresNode) -> str:
        hosts = ",".join(node.address for node in nodes)
        return f"postgresql://{USER}@{hosts}/postgres?schema={schema}"

    async def stop(self) -> None:
        await self.link.stop()
        for node in (self.primary, self.standby):
            await asyncio.to_thread(node.stop)


@contextlib.asynccontextmanager
async def failover_pair(synchronous: bool) -> AsyncIterator[FailoverPair]:
    with tempfile.TemporaryDirectory(prefix="instar-ha-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        pair = FailoverPair(Path(folder), synchronous)
        await pair.start()
        try:
            yield pair
        finally:
            await pair.stop()


async def one_round(pair: FailoverPair, schema: str, silent: float) -> FailoverReport:
    """Write through several stores, fail over, write on, and compare with the new primary."""
    report = FailoverReport()
    url = pair.url(schema, pair.primary, pair.standby)
    stores = [PostgresStore(parse_url(url, timeout=15)) for _ in range(_STORES)]
    recorders = [Recorder(store, after=await store.barrier()) for store in stores]
    stop = asyncio.Event()
    writing = [
        asyncio.create_task(_write(store, f"{n}-{m}", stop, report))
        for n, store in enumerate(stores)
        for m in range(_WRITERS)
    ]
    await report.more(200)
    await pair.fail_over(silent)
    await pair.add_standby()
    await report.more(50)
    stop.set()
    await asyncio.gather(*writing)
    await _compare(stores, recorders, report)
    for store in stores:
        await store.close()
    return report


async def _write(
    store: PostgresStore, name: str, stop: asyncio.Event, report: FailoverReport
) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        key = f"g.io/p/{name}-{number}"
        try:
            report.note(key, await store.commit(Write(key, key.encode(), 0)))
        except StoreError:
            report.unknown += 1


async def _compare(
    stores: list[PostgresStore], recorders: list[Recorder], report: FailoverReport
) -> None:
    end = await stores[0].barrier()
    there = {record.key: record.revision for record in (await stores[0].range("")).records}
    report.lost = [
        key for key, revision in report.acknowledged.items() if there.get(key) != revision
    ]
    for recorder in recorders:
        if recorder.failure is not None:
            report.went_back += 1
            continue
        await recorder.reached(end)
        seen = {event.key: event.revision for event in recorder.events}
        if seen != there or len(recorder.events) != len(seen):
            report.wrong.append("a follower saw another history than the database has")


async def rounds(count: int, synchronous: bool) -> int:
    """Run so many rounds; print one line each. Return the number of acknowledged writes lost."""
    lost, began = 0, time.monotonic()
    async with failover_pair(synchronous) as pair:
        for number in range(count):
            silent = 1.0 if number % 2 else 0.0
            report = await one_round(pair, f"r{number}", silent)
            lost += len(report.lost) + len(report.wrong)
            print(
                f"{time.monotonic() - began:6.0f} s: round {number + 1}, link "
                f"{'silent' if silent else 'fine'}: {len(report.acknowledged)} acknowledged, "
                f"{report.unknown} unknown, {len(report.lost)} lost, {report.went_back} of "
                f"{_STORES} stores noticed a cut history {report.wrong}",
                flush=True,
            )
    return lost


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=20)
    parser.add_argument("--asynchronous", action="store_true", help="without a synchronous standby")
    args = parser.parse_args()
    return 1 if asyncio.run(rounds(args.rounds, not args.asynchronous)) else 0


if __name__ == "__main__":
    sys.exit(main())
