"""Connections to PostgreSQL cut at every step, and every answer held against the database.

Each connection through the proxy is doomed: it is cut after a random number of pieces in one
direction, before or after that piece is passed on. So connecting, checking, sending a batch, its
answer, settling and the feed are all cut. ``scripts/soak`` runs many of them:
``.venv/bin/python -m tests.storage.postgres_cuts 5000``.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field

from instar.wire.storage.postgres.store import PostgresStore
from instar.wire.storage.postgres.url import parse_url
from instar.wire.storage.store import Stale, StoreError, Write
from tests.storage.postgres_server import PostgresNode, postgres_node
from tests.storage.proxy import ForwardingProxy
from tests.storage.recorder import Recorder

_LONGEST = 24
"""Pieces that pass at most; connecting needs about ten."""


class CuttingProxy(ForwardingProxy):
    def __init__(self, port: int, chance: random.Random) -> None:
        super().__init__(f"127.0.0.1:{port}")
        self._chance = chance
        self.cuts = 0
        self.cutting = True

    def _passing(
        self,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> Iterable[Coroutine[None, None, None]]:
        doomed_up = self._chance.random() < 0.5
        pieces, passes = self._chance.randint(1, _LONGEST), self._chance.random() < 0.5
        never = sys.maxsize
        both = (here[1], there[1])
        yield self._pass(here[0], there[1], pieces if doomed_up else never, passes, both)
        yield self._pass(there[0], here[1], never if doomed_up else pieces, passes, both)

    async def _pass(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        pieces: int,
        passes: bool,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        try:
            while data := await source.read(65536):
                pieces -= 1
                if pieces <= 0 and self.cutting:
                    self.cuts += 1
                    if passes:
                        target.write(data)
                        await target.drain()
                    for each in both:
                        # What was written reaches the other side; nothing is read any more.
                        each.close()
                    return
                target.write(data)
        except ConnectionError:
            return
        finally:
            target.close()


@dataclass
class CutReport:
    cuts: int = 0
    acknowledged: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    refused: int = 0
    stale: int = 0
    unknown: int = 0
    certain: int = 0
    problems: list[str] = field(default_factory=list)


async def cut(node: PostgresNode, schema: str, cuts: int, seed: int, writers: int = 3) -> CutReport:
    """Write through several stores whose connections are cut so often, then compare."""
    chance = random.Random(seed)
    proxy = CuttingProxy(node.port, chance)
    port = int((await proxy.start()).rpartition(":")[2])
    url = node.url(schema)
    straight = PostgresStore(parse_url(url, timeout=30))
    await straight.barrier()  # creates the tables
    report = CutReport()
    stores = [
        PostgresStore(parse_url(url.replace(str(node.port), str(port)), timeout=8))
        for _ in range(writers)
    ]
    recorders = [Recorder(straight, after=1)]
    written: dict[str, list[tuple[bytes, str]]] = {}
    tasks = [
        asyncio.create_task(_write(store, f"w{n}-{m}", proxy, cuts, report, written))
        for n, store in enumerate(stores)
        for m in range(4)
    ]
    await asyncio.gather(*tasks)
    proxy.cutting = False
    report.cuts = proxy.cuts
    for store in stores:
        await store.close()
    await _compare(node, schema, straight, recorders, report, written)
    await straight.close()
    await proxy.stop()
    return report


async def _write(
    store: PostgresStore,
    name: str,
    proxy: CuttingProxy,
    cuts: int,
    report: CutReport,
    written: dict[str, list[tuple[bytes, str]]],
) -> None:
    """Create, update twice, then go on with the next key; an unknown outcome ends a key."""
    number = 0
    while proxy.cuts < cuts:
        number += 1
        key, revision = f"g.io/p/{name}-{number}", 0
        for step in range(3):
            value = f"{key} {step}".encode()
            tried = written.setdefault(key, [])
            try:
                revision = await store.commit(Write(key, value, revision))
            except Stale as stale:
                report.problems.append(f"{key}: nobody else wrote it: {stale}")
                return
            except StoreError as error:
                certain = "nothing was written" in str(error)
                tried.append((value, "certain" if certain else "unknown"))
                report.certain += certain
                report.unknown += not certain
                break
            tried.append((value, "acknowledged"))
            report.acknowledged[f"{key} {step}"] = (revision, value)


async def _compare(
    node: PostgresNode,
    schema: str,
    straight: PostgresStore,
    recorders: list[Recorder],
    report: CutReport,
    written: dict[str, list[tuple[bytes, str]]],
) -> None:
    end = await straight.barrier()
    for recorder in recorders:
        await recorder.reached(end)
        revisions = [event.revision for event in recorder.events]
        if revisions != list(range(2, end + 1)):
            report.problems.append("the feed has a hole or a repeat")
    there = {event.value: event.revision for event in recorders[0].events}
    for what, (revision, value) in report.acknowledged.items():
        if there.get(value) != revision:
            report.problems.append(f"{what}: acknowledged at {revision}, found {there.get(value)}")
    for key, tried in written.items():
        for value, outcome in tried:
            if outcome == "certain" and value in there:
                report.problems.append(f"{key}: refused and nevertheless there")
    rows = node.sql(f"select count(*), max(revision) from {schema}.log")
    if rows != f"{end - 1}|{end}":
        report.problems.append(f"revisions have holes: {rows}, head {end}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cuts", type=int, nargs="?", default=5000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    began, problems, done = time.monotonic(), 0, 0
    with postgres_node() as node:
        while done < args.cuts:
            part = min(500, args.cuts - done)
            report = asyncio.run(cut(node, f"c{done}", part, args.seed + done))
            done += report.cuts
            problems += len(report.problems)
            print(
                f"{time.monotonic() - began:6.0f} s: {done} cuts, {len(report.acknowledged)} "
                f"acknowledged, {report.unknown} unknown, {report.certain} refused, "
                f"{len(report.problems)} wrong {report.problems[:3]}",
                flush=True,
            )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
