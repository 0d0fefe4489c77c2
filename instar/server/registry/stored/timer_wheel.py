"""Calls many back in time, about: one timer for all of them instead of one each.

A timer of the event loop is half a kilobyte and a place in a heap; a watch has up to three, and
none of them is in a hurry. Knows nothing of what is to be done.
"""

from __future__ import annotations

import asyncio
from math import ceil
from typing import Protocol

STEP_SECONDS = 0.1


class Due(Protocol):
    """Who is to be called."""

    def due(self) -> None: ...


class Wheel:
    def __init__(self) -> None:
        self._steps: dict[int, dict[Due, None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0

    @property
    def waits(self) -> bool:
        return self._timer is not None

    def put(self, item: Due, when: float) -> int:
        """To be called at this time of the loop or a step later; where it was put, for ``take``."""
        step = ceil(when / STEP_SECONDS)
        self._steps.setdefault(step, {})[item] = None
        if self._timer is None or step < self._next:
            self._wait_for(step)
        return step

    def take(self, item: Due, step: int) -> None:
        """It is not to be called any more; nothing happens where it has been."""
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
                item.due()
        if self._steps and self._timer is None:
            self._wait_for(min(self._steps))
