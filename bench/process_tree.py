"""Measures the CPU time and memory of all descendants of a process by polling ``/proc``.

``bench/suites.py`` runs Go suites with it: a suite starts and stops its servers itself, so they
cannot be measured directly. Linux only.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

_EVERY_SECONDS = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


class ProcessSample(NamedTuple):
    pid: int
    session: int
    cpu: float
    resident_mb: float


class Watched(NamedTuple):
    exit_code: int
    seconds: float
    cpu: float
    """CPU seconds of the processes that it started, without its own."""
    peak_mb: float
    """Peak of the sum of their resident memory."""


def run_watched(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], output: IO[bytes]
) -> Watched:
    """Run a program in a new session until it ends, and measure the processes that it starts."""
    began = time.monotonic()
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    spent: dict[int, float] = {}
    peak = 0.0
    while process.poll() is None:
        started = [each for each in _samples(process.pid) if each.pid != process.pid]
        spent |= {each.pid: each.cpu for each in started}
        peak = max(peak, sum(each.resident_mb for each in started))
        time.sleep(_EVERY_SECONDS)  # nothing tells when a foreign process has used more
    return Watched(process.returncode, time.monotonic() - began, sum(spent.values()), peak)


def _samples(session: int) -> list[ProcessSample]:
    found = (_sample(name) for name in os.listdir("/proc") if name.isdecimal())
    return [each for each in found if each is not None and each.session == session]


def _sample(pid: str) -> ProcessSample | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None  # it has ended since the folder was read
    cpu = (int(fields[11]) + int(fields[12])) / _TICKS
    return ProcessSample(int(pid), int(fields[3]), cpu, int(fields[21]) * _PAGE_MB)
