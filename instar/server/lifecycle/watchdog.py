"""Watchdog of the event loop: measures how late it is and names the request that blocks it.

``composition.py`` starts it with every server; a thread samples the loop. One loop serves all
requests, so a long step delays them all. The delay is a metric. A step that uses much processor
time is a defect of this server, so the log names its request and function; a delay because the
machine is busy is not a defect.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from types import FrameType
from typing import NamedTuple

from instar.base import limits
from instar.base.metrics import Histogram, Measured, Metric
from instar.base.supervision import (
    SupervisedThread,
    Supervision,
    count_unhandled,
    note_progress,
    report_failure,
)
from instar.server.http.messages import Request

log = logging.getLogger(__name__)
METRIC = "instar_loop_lag_seconds"
_BEAT_SECONDS = 0.05
_LOOK_SECONDS = 0.1
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_REMEMBERED = 100


class LoopStall(NamedTuple):
    """A step that held the event loop, with its request and function."""

    seconds: float
    """Processor time, not wall time."""
    by: str


class Watchdog:
    """Runs a heartbeat in the loop, and samples it from a thread."""

    def __init__(
        self,
        supervision: Supervision | None = None,
        threshold: float = limits.LOOP_HELD_SECONDS,
    ) -> None:
        self._supervision = supervision or Supervision()
        self.held: list[LoopStall] = []
        """The latest stalls, for tests."""
        self._threshold = threshold
        self._lag = Histogram(METRIC, "How late the event loop is.", (), _BUCKETS)
        self._worst = 0.0
        self._beats = 0
        self._spent = 0.0
        self._due = 0.0
        self._suspect = ""
        self._timer: asyncio.TimerHandle | None = None
        self._ended = threading.Event()
        self._thread: SupervisedThread | None = None
        self._watched = 0
        self._clock: int | None = None

    def start(self) -> None:
        """Call in the loop to watch."""
        self._watched = threading.get_ident()
        count_unhandled(asyncio.get_running_loop(), self._ended.is_set)
        if hasattr(time, "pthread_getcpuclockid"):  # missing on macOS: no request is named there
            self._clock = time.pthread_getcpuclockid(self._watched)
        self._spent = time.thread_time()
        self._schedule()
        self._thread = self._supervision.keep_thread("watchdog", self._watch)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._ended.set()
        if self._thread is not None:
            self._thread.stop()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + _BEAT_SECONDS
        self._timer = loop.call_later(_BEAT_SECONDS, self._beat)

    def _beat(self) -> None:
        try:
            self._note()
        except Exception as error:
            report_failure("watchdog", error)
        self._schedule()

    def _note(self) -> None:
        lag = max(asyncio.get_running_loop().time() - self._due, 0.0)
        self._lag.observe((), lag)
        self._worst = max(self._worst, lag)
        spent = time.thread_time()
        taken, self._spent = spent - self._spent, spent
        self._beats += 1
        suspect, self._suspect = self._suspect, ""
        if suspect and taken > self._threshold:
            self.held = [*self.held[1 - _REMEMBERED :], LoopStall(taken, suspect)]
            log.warning("the event loop was held for %.2f s by %s", taken, suspect)

    def _watch(self) -> None:
        """Sample the loop. Several steps may run between two beats, but a beat that is missing in
        two samples means a single step."""
        seen = -1
        while not self._ended.wait(_LOOK_SECONDS):
            note_progress()
            beats = self._beats
            if beats == seen and self._time_since_beat() > self._threshold * 0.8:
                suspect = _describe(sys._current_frames().get(self._watched))
                if beats == self._beats:
                    self._suspect = suspect
            seen = beats

    def _time_since_beat(self) -> float:
        """Processor time of the loop since its last beat."""
        return 0.0 if self._clock is None else time.clock_gettime(self._clock) - self._spent

    def metrics(self) -> tuple[Metric, ...]:
        worst = "The latest it has been since the start."
        return (
            self._lag,
            Measured("instar_loop_lag_worst_seconds", worst, (), lambda: [((), self._worst)]),
        )


def _describe(frame: FrameType | None) -> str:
    """The request that is being served, if any, and the innermost function of instar."""
    request, place = "", ""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not place and module.startswith("instar"):
            place = f"{module}.{frame.f_code.co_name}"
        found = frame.f_locals.get("request")
        if isinstance(found, Request):
            request = f"{found.method} {found.path[:200]}"
        frame = frame.f_back
    return f"{request or 'no request'} (in {place or 'the runtime'})"
