"""Watch event dispatcher: writes events to watchers in time slices and batches them under load.

``watchers.py`` has one per collection and calls it when a channel has events to send. An event for
five thousand watchers is five thousand writes: they are made in slices of 10 ms, so that other
requests run in between. After a round the dispatcher pauses for twice the time that the round took,
within bounds, and events of that time go out together with one write per watcher: the more there is
to do, the cheaper each event gets. An event that closely follows such a round waits a moment for
others; the first one after a quiet time goes out at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from instar.base.supervision import report_failure

SLICE_SECONDS = 0.01
"""Longest time per turn of the event loop."""
SHORT_SECONDS = 0.0005
"""A round that takes no longer is followed by the next without a pause."""
LEFT_TO_OTHERS = 2.0
"""The pause after a round, in multiples of the time it took."""
LONGEST_PAUSE = 0.05
CLOSELY_SECONDS = 0.008
"""An event that comes so soon after a round waits for others."""
GATHERING_SECONDS = 0.016
"""How long after the end of a round such events are gathered: a frame of a screen, in which a busy
writer makes ten changes."""


class PendingDelivery(Protocol):
    """A channel that has lines to send."""

    def send_pending(self, in_time: Callable[[], bool]) -> bool:
        """Send until all is sent or ``in_time`` returns false. Return whether all is sent."""
        ...

    def end(self) -> None:
        """End it after a failure; it is not called again."""
        ...


class WatchDispatcher:
    """Schedules the deliveries of one collection's channels."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waiting: dict[PendingDelivery, None] = {}
        self._scheduled: asyncio.Handle | None = None
        self._not_before = 0.0
        self._ended = 0.0
        """When the last round ended that was longer than ``SHORT_SECONDS``."""
        self._taken = 0.0
        """Seconds that the current round took so far."""

    def call(self, bundle: PendingDelivery, *, at_once: bool = False) -> None:
        """Schedule a delivery, in order of the calls and not in the caller's turn. With ``at_once``
        without a pause, because too much would be gathered."""
        self._waiting[bundle] = None
        if at_once and self._ended:
            self._ended = self._not_before = 0.0
            if self._scheduled is not None:
                self._scheduled.cancel()
                self._scheduled = None
        if self._scheduled is None:
            self._schedule()

    def forget(self, bundle: PendingDelivery) -> None:
        self._waiting.pop(bundle, None)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        pause = self._pause(self._clock()) if self._ended else 0.0
        if pause > 0:
            self._scheduled = loop.call_later(pause, self._go)
        else:
            self._scheduled = loop.call_soon(self._go)

    def _pause(self, now: float) -> float:
        closely = now < self._ended + CLOSELY_SECONDS
        gathered = self._ended + GATHERING_SECONDS if closely else 0.0
        return max(self._not_before, gathered) - now

    def _go(self) -> None:
        self._scheduled = None
        began = self._clock()
        until = began + SLICE_SECONDS

        def in_time() -> bool:
            return self._clock() < until

        for bundle in list(self._waiting):
            if bundle in self._waiting and _is_done(bundle, in_time):
                self._waiting.pop(bundle, None)
            if not in_time():
                break
        now = self._clock()
        self._taken += now - began
        if self._waiting:
            self._scheduled = asyncio.get_running_loop().call_soon(self._go)
            return
        burden = self._taken > SHORT_SECONDS
        self._ended = now if burden else 0.0
        self._not_before = now + min(self._taken * LEFT_TO_OTHERS, LONGEST_PAUSE) if burden else 0.0
        self._taken = 0.0


def _is_done(bundle: PendingDelivery, in_time: Callable[[], bool]) -> bool:
    """Send what is pending; one that fails is ended, and the others are sent."""
    try:
        return bundle.send_pending(in_time)
    except Exception as error:
        report_failure("watches", error)
        bundle.end()
        return True
