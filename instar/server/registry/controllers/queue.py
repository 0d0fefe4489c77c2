"""Work queue of the controllers: deduplicated keys, retry with back-off, orderly stop.

Every controller has one. A key is processed by one task at a time; a key added meanwhile is
processed once more afterwards. Keys are opaque to the queue; the controller's ``reconcile``
processes them.

No key blocks the others. A key that takes long no longer counts towards the limit of concurrent
keys, so that the next one can start. A key that makes no progress for ``STALLED_SECONDS`` is
cancelled, counted, shown by ``/readyz`` and retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from time import monotonic
from typing import Generic, TypeVar

from instar.base.errors import ApiError
from instar.base.supervision import (
    Pulse,
    Supervision,
    begin_pulse,
    is_being_cancelled,
    report_failure,
)
from instar.wire.storage.store import Stale

log = logging.getLogger(__name__)
_USUAL_CONFLICTS = 3
"""So many conflicts of a key in a row are logged."""
_LONG_SECONDS = 1.0
"""A key that takes longer does not count towards the limit of concurrent keys, and is processed
again only after a pause as long as it took."""
_MOST_LONG = 100
"""Keys of one queue that may take long at the same time; further ones wait."""
_SHOWN_SECONDS = 60.0
"""For how long ``/readyz`` shows that a key has stalled and was cancelled."""
K = TypeVar("K", bound=Hashable)


class Backoff:
    """Retry delays of a failed key: doubling from ``first`` to ``longest``."""

    def __init__(self, first: float, longest: float) -> None:
        self.first, self.longest = first, longest

    def after(self, failures: int) -> float:
        return min(self.first * 2.0 ** min(failures - 1, 32), self.longest)


class Queue(Generic[K]):
    """Calls ``reconcile`` for each key; a returned number of seconds requeues the key after them.

    Exceptions are logged (an ``ApiError`` or ``Stale`` in one line, others with a traceback, and
    counted), and the key is retried after a delay.
    """

    def __init__(
        self,
        what: str,
        reconcile: Callable[[K], Awaitable[float | None]],
        backoff: Backoff,
        *,
        max_concurrent: int = 0,
        supervision: Supervision | None = None,
    ) -> None:
        """``max_concurrent`` limits the keys processed at the same time; 0 is no limit. Keys that
        take longer than a second do not count."""
        self._what = what
        self._reconcile = reconcile
        self._backoff = backoff
        self._max_concurrent = max_concurrent
        self._waiting: dict[K, None] = {}
        self._running: dict[K, asyncio.Task[None]] = {}
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._stopping = False
        self._began: dict[K, float] = {}
        self._pulses: dict[K, Pulse] = {}
        self._overdue: set[K] = set()
        self._stalled_at = -_SHOWN_SECONDS
        self._looking: asyncio.TimerHandle | None = None
        if supervision is not None:
            supervision.watch(f"queue {what.rstrip(':')}", self._stalled)

    def add(self, key: K) -> None:
        """Queue the key for immediate processing."""
        if self._stopping:
            return
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._running:
            self._again.add(key)
        else:
            self._waiting[key] = None
            self._start()

    def add_later(self, key: K, seconds: float) -> None:
        """Queue the key for processing after ``seconds``, for work that can wait. A key that is
        delayed is processed at the earlier of both times."""
        if key in self._running:
            self._again.add(key)
            return
        if self._stopping or key in self._waiting:
            return
        loop, timer = asyncio.get_running_loop(), self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._due, key)

    def drop(self, key: K) -> None:
        """Drop the key, because its changes so far have been handled."""
        self._again.discard(key)
        self._waiting.pop(key, None)

    def holds(self, key: K) -> bool:
        """Return whether the key is queued, delayed or being processed."""
        return key in self._running or key in self._waiting or key in self._timers

    async def stop(self) -> None:
        self._stopping = True
        self._waiting.clear()
        if self._looking is not None:
            self._looking.cancel()
        for timer in self._timers.values():
            timer.cancel()
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self) -> None:
        while self._waiting and self._has_place():
            key = next(iter(self._waiting))
            del self._waiting[key]
            pulse = self._pulses[key] = Pulse()
            task = asyncio.get_running_loop().create_task(self._work(key, pulse))
            self._running[key] = task
            self._began[key] = pulse.last
            task.add_done_callback(partial(self._left, key))
        if self._looking is None and self._running:
            loop = asyncio.get_running_loop()
            self._looking = loop.call_later(_LONG_SECONDS, self._look_after)

    def _has_place(self) -> bool:
        if not self._max_concurrent or len(self._running) < self._max_concurrent:
            return True
        since = monotonic() - _LONG_SECONDS
        long = sum(began < since for began in self._began.values())
        return len(self._running) - min(long, _MOST_LONG) < self._max_concurrent

    def _look_after(self) -> None:
        """Every second while keys are processed: cancel stalled ones, give places of long ones to
        others."""
        self._looking = None
        for key, pulse in self._pulses.items():
            if pulse.has_stalled():
                self._stalled_at = pulse.last = monotonic()
                report_failure(self._what, TimeoutError("no progress"), f"{key} (cancelled)")
                self._overdue.add(key)
                self._running[key].cancel()
        if not self._stopping:
            self._start()

    def _left(self, key: K, task: asyncio.Task[None]) -> None:
        del self._running[key]
        took = monotonic() - self._began.pop(key)
        del self._pulses[key]
        if key in self._overdue:
            self._overdue.discard(key)
            self._again.discard(key)
            self.add_later(key, self._failed(key))
        elif key in self._again:
            self._again.discard(key)
            if took > _LONG_SECONDS:  # as long again is left to others
                self.add_later(key, took)
            else:
                self.add(key)
        if not self._stopping:
            self._start()

    async def _work(self, key: K, pulse: Pulse) -> None:
        begin_pulse(pulse)
        try:
            delay = await self._reconcile(key)
        except (ApiError, Stale) as error:
            delay = self._failed(key)
            # Another write came between: that is usual, unless it goes on.
            usual = isinstance(error, Stale) and self._failures[key] < _USUAL_CONFLICTS
            level = logging.DEBUG if usual else logging.INFO
            log.log(level, "reconciling %s (%s) failed, will retry: %s", self._what, key, error)
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled(error):
                raise
            report_failure(self._what, error, str(key))
            delay = self._failed(key)
        else:
            self._failures.pop(key, None)
        if delay is not None and not self._stopping:
            self._timers[key] = asyncio.get_running_loop().call_later(delay, self._due, key)

    def _stalled(self) -> str | None:
        """Return the trouble if a key makes no progress, or made none not long ago."""
        stalled = monotonic() - self._stalled_at < _SHOWN_SECONDS
        if stalled or any(pulse.has_stalled() for pulse in self._pulses.values()):
            return f"the queue of {self._what} has stalled"
        return None

    def _failed(self, key: K) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return self._backoff.after(failures)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)
