"""``python -m bench.start [ROUNDS]``: measures time, CPU and memory of a server start, before any
request.

Prints the least of several rounds, because other load only adds to it. On a busy machine CPU time
varies less than wall time.
"""

from __future__ import annotations

import sys
import time

import instar.testing
from bench.process import scratch, serving


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for storage in ("memory:", "sqlite:bench.db"):
        found = [process(storage) for _ in range(rounds)]
        ready, cpu, resident = (min(column) for column in zip(*found, strict=True))
        print(f"{storage:16} ready {ready:.2f} s, CPU {cpu:.2f} s, resident {resident:.0f} MB")
    found_inside = [inside() for _ in range(rounds)]
    ready, cpu, stopped = (min(column) for column in zip(*found_inside, strict=True))
    print(f"in this process  ready {ready:.2f} s, CPU {cpu:.2f} s, stopped in {stopped:.3f} s")


def process(storage: str) -> tuple[float, float, float]:
    """Measure a first start in a new process, including the creation of certificates."""
    with scratch() as folder, serving(storage, folder) as server:
        return server.started_in, server.cpu_seconds(), server.resident_mb()


def inside() -> tuple[float, float, float]:
    began, used = time.perf_counter(), time.process_time()
    with instar.testing.server():
        ready, cpu = time.perf_counter() - began, time.process_time() - used
        leaving = time.perf_counter()
    return ready, cpu, time.perf_counter() - leaving


if __name__ == "__main__":
    main()
