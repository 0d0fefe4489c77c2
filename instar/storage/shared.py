"""One call for many callers, where an answer may only serve those who asked before it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

from instar.parking import Waiter, waiter

T = TypeVar("T")


class Shared(Generic[T]):
    """Who comes while a call is under way shares the next one, not that one: it may be too old.

    A call is made at the end of the turn of the event loop in which somebody asks for it.
    """

    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._waiting: list[Waiter[T]] = []
        self._busy = False
        self._running: asyncio.Task[T] | None = None

    async def get(self) -> T:
        mine: Waiter[T] = waiter()
        self._waiting.append(mine)
        if not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._begin)
        return await mine

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._running = asyncio.ensure_future(self._call())
        # In a callback, not in a task: who goes on from here has none.
        self._running.add_done_callback(partial(self._finish, waiting))

    def _finish(self, waiting: list[Waiter[T]], call: asyncio.Future[T]) -> None:
        failure = asyncio.CancelledError() if call.cancelled() else call.exception()
        for each in waiting:
            if each.done():
                continue  # who gave up does not take the answer from the others
            if failure is None:
                each.set_result(call.result())
            else:
                each.set_exception(failure)
        if self._waiting:
            self._begin()
        else:
            self._busy = False
