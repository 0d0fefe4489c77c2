"""Token bucket that limits the request rate of a client; used by ``client.py``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class TokenBucket:
    """At most ``qps`` requests a second on average, ``burst`` at once; 0 qps means no limit."""

    def __init__(
        self, qps: float, burst: int = 1, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = 1 / qps if qps > 0 else 0.0
        self._slack = self._interval * (max(burst, 1) - 1)
        self._clock = clock
        self._next = clock()

    def reserve(self) -> float:
        """Reserve a slot and return the seconds to wait for it."""
        if not self._interval:
            return 0.0
        now = self._clock()
        slot = max(self._next, now - self._slack)
        self._next = slot + self._interval
        return max(0.0, slot - now)

    async def wait(self) -> None:
        delay = self.reserve()
        if delay > 0:
            await asyncio.sleep(delay)
