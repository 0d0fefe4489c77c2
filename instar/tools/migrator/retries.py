"""Retries of API requests with back-off, as long as the server's ``Retry-After`` asks for.

The writer, the lister, the preflight checks and the upgrader call it. ``RetryPolicy`` bounds the
number of attempts.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from instar.base.errors import ApiError
from instar.base.fast_dataclass import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    attempts: int = 6
    first_delay: float = 0.2
    longest_delay: float = 15.0

    def delay(self, attempt: int, asked: int) -> float:
        """Doubles from try to try, with chance mixed in; a Retry-After is at least kept."""
        grown: float = min(self.first_delay * 2**attempt, self.longest_delay)
        return max(grown * random.uniform(0.5, 1.0), float(min(asked, 60)))


async def call_with_retries(call: Callable[[], Awaitable[T]], patience: RetryPolicy) -> T:
    """The answer, or the last ``ApiError`` when trying again is pointless or was tried enough."""
    attempt = 0
    while True:
        try:
            return await call()
        except ApiError as error:
            attempt += 1
            if not error.retryable or attempt >= patience.attempts:
                raise
            await asyncio.sleep(patience.delay(attempt - 1, error.retry_after))
