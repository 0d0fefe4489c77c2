"""One call for many callers, where an answer may only serve those who asked before it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Who comes while a call is under way shares the next one, not that one: it may be too old."""

    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._current: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def get(self) -> T:
        if self._next is None:
            self._next = asyncio.ensure_future(self._after(self._current))
            self._next.add_done_callback(_retrieve)
        # A caller that gives up does not take the answer from the others.
        return await asyncio.shield(self._next)

    async def _after(self, current: asyncio.Task[T] | None) -> T:
        if current is not None and not current.done():
            await asyncio.wait([current])
        self._current, self._next = self._next, None
        return await self._call()


def _retrieve(task: asyncio.Task[T]) -> None:
    """Every caller may have given up; then nobody else asks for the exception."""
    if not task.cancelled():
        task.exception()
