"""Simulates replicas on one PostgreSQL: the row lock on the head, batches, and the feed's reads.

``python -m bench.postgres_model`` prints the table of docs/explanation/storage-engines.md. The
costs are constants measured with a prototype; the simulation adds queueing, which the formula
leaves out.
"""

from __future__ import annotations

import heapq
import random
from typing import NamedTuple

FLUSH = 0.0005
FLUSH_STANDBY = 0.002
SERVER_WRITE = 20e-6
FEED_READ_SERVER = 40e-6
FEED_ROW_SERVER = 10e-6
MOST = 256
OBJECT_MEMORY = 2100
LOAD_SECONDS = 1e-5
SECONDS = 2.0


class Simulated(NamedTuple):
    writes: float
    batch: float
    p99: float
    feed_cores: float


def simulate(replicas: int, offered: float, flush: float, seed: int = 1) -> Simulated:
    """Return writes a second, writes per batch, the p99 of a write, and the primary's cores that
    the feeds need, for ``offered`` writes a second spread over the replicas."""
    chance = random.Random(seed)
    arrivals = []
    for replica in range(replicas):
        moment = chance.expovariate(offered / replicas)
        while moment < SECONDS:
            arrivals.append((moment, replica))
            moment += chance.expovariate(offered / replicas)
    arrivals.sort()
    waiting: dict[int, list[float]] = {}
    queue: list[tuple[float, int]] = []
    at, free, done, batches, latencies = 0, 0.0, 0, 0, list[float]()
    while at < len(arrivals) or queue:
        # everything that arrives before the lock is free joins its replica's next batch
        limit = max(free, queue[0][0] if queue else arrivals[at][0])
        while at < len(arrivals) and arrivals[at][0] <= limit:
            moment, replica = arrivals[at]
            at += 1
            mine = waiting.setdefault(replica, [])
            if not mine:
                heapq.heappush(queue, (moment, replica))
            mine.append(moment)
        moment, replica = heapq.heappop(queue)
        taken, rest = waiting[replica][:MOST], waiting[replica][MOST:]
        free = max(free, moment) + flush + len(taken) * SERVER_WRITE
        latencies += [free - arrived for arrived in taken]
        waiting[replica] = rest
        if rest:
            heapq.heappush(queue, (free, replica))
        batches, done = batches + 1, done + len(taken)
    span = max(SECONDS, free)
    latencies.sort()
    reads = batches / span * replicas * FEED_READ_SERVER
    rows = done / span * replicas * FEED_ROW_SERVER
    return Simulated(
        done / span, done / batches, latencies[int(len(latencies) * 0.99)], reads + rows
    )


def main() -> None:
    print("| replicas | offered writes/s | standby | writes/s | per batch | p99 | feeds, cores |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for replicas in (3, 10, 100, 1000):
        for offered in (100.0, 1000.0, 10_000.0):
            for flush, standby in ((FLUSH, "no"), (FLUSH_STANDBY, "yes")):
                found = simulate(replicas, offered, flush)
                print(
                    f"| {replicas} | {offered:,.0f} | {standby} | {found.writes:,.0f} | "
                    f"{found.batch:.1f} | {found.p99 * 1e3:,.1f} ms | {found.feed_cores:,.2f} |"
                )
    for objects in (10**5, 10**6, 10**7, 10**8):
        memory, load = objects * OBJECT_MEMORY / 1e9, objects * LOAD_SECONDS
        print(f"{objects:,} objects: {memory:,.1f} GB in each replica, {load:,.0f} s to load")


if __name__ == "__main__":
    main()
