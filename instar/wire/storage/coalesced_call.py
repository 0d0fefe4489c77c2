"""One call for many callers, where an answer may only serve those who asked before it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from instar.base.eager_tasks import Parked, start
from instar.base.taskless_wait import Waiter, waiter

T = TypeVar("T")

_AT_ONCE = 2
"""Calls under way. With one, whoever comes late waits for two of them; and who is asked while he
still works on the one before has less to do for both. More than two change nothing."""


class Shared(Generic[T]):
    """Who comes while calls are under way shares the next one, not those: they may be too old.

    A call is made at the end of the turn of the event loop in which somebody asks for it, and
    needs no task unless it waits for more than an answer.
    """

    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._waiting: list[Waiter[T]] = []
        self._due = False  # whether a call is about to be made
        self._running: dict[int, asyncio.Task[None] | Parked | None] = {}
        self._made = 0

    async def get(self) -> T:
        mine: Waiter[T] = waiter(prompt=True)
        self._waiting.append(mine)
        if not self._due and len(self._running) < _AT_ONCE:
            self._due = True
            asyncio.get_running_loop().call_soon(self._begin)
        return await mine

    def _begin(self) -> None:
        self._due = False
        self._made += 1
        number, waiting, self._waiting = self._made, self._waiting, []
        self._running[number] = None
        started = start(self._share(number, waiting))
        if started is not None:
            self._running[number] = started

    def _begin_outside(self) -> None:
        """Not in a task that this call has become: the next would begin in it, and so on."""
        loop = asyncio.get_running_loop()
        if asyncio.current_task(loop) is None:
            self._begin()
        else:
            self._due = True
            loop.call_soon(self._begin)

    async def _share(self, number: int, waiting: list[Waiter[T]]) -> None:
        failure: BaseException | None = None
        try:
            found = await self._call()
        except (Exception, asyncio.CancelledError) as error:
            failure = error
        del self._running[number]
        if self._waiting and not self._due:
            # Ahead of those who are told now: their answers are made while it is under way.
            self._begin_outside()
        for each in waiting:
            if each.done():
                continue  # who gave up does not take the answer from the others
            if failure is None:
                each.set_result(found)
            else:
                each.set_exception(failure)
