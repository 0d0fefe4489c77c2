"""Measures how long one client's gets wait behind other work: in time, and in the CPU that the
server spent between a request and its answer, which does not depend on what else the machine does.

Used by ``bench.fairness``.
"""

from __future__ import annotations

import http.client
import statistics
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from bench.process import TRUSTING, Measured


class GetDelay(NamedTuple):
    """Milliseconds: medians, means and 99th percentiles."""

    time: float
    time_mean: float
    time_p99: float
    cpu: float
    cpu_mean: float
    cpu_p99: float
    gets: float


def get_delay(server: Measured, path: str, token: str, seconds: float) -> GetDelay:
    """Get an object again and again over one connection."""
    parts = urlsplit(server.url)
    connection = http.client.HTTPSConnection(
        parts.hostname or "", parts.port, context=TRUSTING, timeout=120
    )
    headers = {"Authorization": f"Bearer {token}"}
    clock = cpu_clock(server.pid)
    times: list[float] = []
    cpus: list[float] = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        began, worked = time.perf_counter(), time.clock_gettime(clock)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        times.append((time.perf_counter() - began) * 1000)
        cpus.append((time.clock_gettime(clock) - worked) * 1000)
        if answer.status != 200:
            raise RuntimeError(f"a get was answered {answer.status}")
    connection.close()
    return GetDelay(*_summary(times), *_summary(cpus), len(times))


def median_of(delays: list[GetDelay]) -> GetDelay:
    """Return the medians of several measurements."""
    columns = zip(*delays, strict=True)
    return GetDelay(*(statistics.median(column) for column in columns))


def cpu_clock(pid: int) -> int:
    """Return the id of the clock of a process's CPU time, as Linux makes it from the pid."""
    return (~pid) << 3 | 2


def _summary(values: list[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    end = ordered[int(len(ordered) * 0.99)]
    return statistics.median(ordered), statistics.mean(ordered), end
