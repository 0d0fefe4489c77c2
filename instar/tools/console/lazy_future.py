"""A value that is created in a thread on first use; a failed creation is tried again.

Used by ``routing.py`` and ``pages.py`` to load the console on demand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LazyFuture(Generic[T]):
    """Value that is made in a thread at the first call."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._making: asyncio.Future[T] | None = None

    def __call__(self) -> Awaitable[T]:
        """Return the value; cancelling a caller does not stop the creation."""
        return asyncio.shield(self.begin())

    def begin(self) -> asyncio.Future[T]:
        if self._making is None or _failed(self._making):
            loop = asyncio.get_running_loop()
            self._making = loop.run_in_executor(None, self._make)
        return self._making


def _failed(making: asyncio.Future[T]) -> bool:
    """Return whether the creation failed and may be tried again."""
    return making.done() and (making.cancelled() or making.exception() is not None)
