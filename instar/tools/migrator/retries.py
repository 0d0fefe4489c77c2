"""Retries API requests with exponential back-off, and waits at least as long as ``Retry-After``.

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
    """How often and after which pauses a failed call is repeated."""

    attempts: int = 6
    first_delay: float = 0.2
    longest_delay: float = 15.0

    def delay(self, attempt: int, asked: int) -> float:
        """Return the delay before the next attempt: doubled each time, with jitter, and at least
        ``Retry-After``.
        """
        grown: float = min(self.first_delay * 2**attempt, self.longest_delay)
        return max(grown * random.uniform(0.5, 1.0), float(min(asked, 60)))


async def call_with_retries(call: Callable[[], Awaitable[T]], patience: RetryPolicy) -> T:
    """Return the response. Raises the last ``ApiError`` if it is permanent or all attempts
    failed.
    """
    attempt = 0
    while True:
        try:
            return await call()
        except ApiError as error:
            attempt += 1
            if not error.retryable or attempt >= patience.attempts:
                raise
            await asyncio.sleep(patience.delay(attempt - 1, error.retry_after))
