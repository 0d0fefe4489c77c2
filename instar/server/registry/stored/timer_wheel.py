"""Timer wheel: one event-loop timer for many approximate timeouts.

The watch streams (``server/rest``) use the wheel of their ``WatchHub`` for bookmarks, timeouts and
flushes. An event-loop timer takes half a kilobyte and a heap entry; a watch has up to three of
them, and none needs to be exact.
"""

from __future__ import annotations

import asyncio
from math import ceil
from typing import Protocol

from instar.base.supervision import report_failure

STEP_SECONDS = 0.1


class TimerTarget(Protocol):
    """An object that the wheel calls at its time."""

    def due(self) -> None: ...


class TimerWheel:
    """Calls targets at their time, rounded up to ``STEP_SECONDS``."""

    def __init__(self) -> None:
        self._steps: dict[int, dict[TimerTarget, None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0

    @property
    def waits(self) -> bool:
        """Whether a target waits to be called."""
        return self._timer is not None

    def put(self, item: TimerTarget, when: float) -> int:
        """Have ``item.due()`` called at this loop time or one step later. Return the step, for
        ``take``."""
        step = ceil(when / STEP_SECONDS)
        self._steps.setdefault(step, {})[item] = None
        if self._timer is None or step < self._next:
            self._wait_for(step)
        return step

    def take(self, item: TimerTarget, step: int) -> None:
        """Cancel the call of ``item``, unless it was made already."""
        items = self._steps.get(step)
        if items is not None:
            items.pop(item, None)
            if not items:
                del self._steps[step]
                if not self._steps and self._timer is not None:
                    self._timer.cancel()
                    self._timer = None

    def _wait_for(self, step: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = step
        self._timer = asyncio.get_running_loop().call_at(step * STEP_SECONDS, self._turn)

    def _turn(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for step in [step for step in self._steps if step * STEP_SECONDS <= now]:
            for item in self._steps.pop(step, {}):
                try:
                    item.due()
                except Exception as error:
                    report_failure("watches", error)
        if self._steps and self._timer is None:
            self._wait_for(min(self._steps))
