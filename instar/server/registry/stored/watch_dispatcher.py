"""Hands lines over to watchers: some at a time, and more together while there is much to do.

An event for five thousand watchers is five thousand writes. They are made in slices, so that others
have their turn in between; and after a round twice the time it took is left to others, within
bounds. What happens meanwhile goes out together in the next round, at the price of one write each:
the more there is to do, the cheaper each event gets. Where an event follows closely upon such a
round, others are likely to follow it, and they are waited for a moment; the first after a quiet
one goes out at once. A round that takes no time is followed by the next at once. Knows no objects
and no bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Protocol

SLICE_SECONDS = 0.01
"""Of one turn of the event loop."""
SHORT_SECONDS = 0.0005
"""A round that takes no longer is nobody's burden."""
LEFT_TO_OTHERS = 2.0
"""Times what a round took."""
LONGEST_PAUSE = 0.05
CLOSELY_SECONDS = 0.008
"""After a round; whoever comes so soon waits for others."""
GATHERING_SECONDS = 0.016
"""From the end of a round, for those who come closely: a frame of a screen, and a busy writer makes
ten changes in it."""


class Bundle(Protocol):
    """What somebody has to hand over."""

    def hand_over(self, in_time: Callable[[], bool]) -> bool:
        """Hand over until it is done or no longer ``in_time``; whether it is done."""
        ...


class Courier:
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waiting: dict[Bundle, None] = {}
        self._scheduled: asyncio.Handle | None = None
        self._not_before = 0.0
        self._ended = 0.0
        """When the last round that was a burden did."""
        self._taken = 0.0
        """Seconds of the round that is going on."""

    def call(self, bundle: Bundle, *, at_once: bool = False) -> None:
        """To be asked to hand over, in this order, not in this step; ``at_once``: no pause is made
        before, since too much would come together."""
        self._waiting[bundle] = None
        if at_once and self._ended:
            self._ended = self._not_before = 0.0
            if self._scheduled is not None:
                self._scheduled.cancel()
                self._scheduled = None
        if self._scheduled is None:
            self._schedule()

    def forget(self, bundle: Bundle) -> None:
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
            if bundle in self._waiting and bundle.hand_over(in_time):
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
