"""Waiting without a task.

A request is begun without one (``eager_tasks.py``), because a task costs more than most
answers. Where it has to wait for one outcome that a callback tells, it need not become a task
either: it waits for a ``Ticket``, and whoever began it goes on with it when the outcome is there.
Knows neither what is waited for nor who waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextvars import Context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Ticket(Generic[T]):
    """Like a future, for the one coroutine without a task that awaits it.

    It goes on in the next turn of the event loop; with ``prompt`` in the step that brings the
    outcome, which must be ready for that, unless a task brings it.
    """

    __slots__ = ("_context", "_done", "_error", "_prompt", "_result", "_resume")

    def __init__(self, prompt: bool = False) -> None:
        self._prompt = prompt
        self._done = False
        self._error: BaseException | None = None
        self._resume: Callable[[], None] | None = None

    def done(self) -> bool:
        return self._done

    def set_result(self, result: T) -> None:
        self._result = result
        self._wake()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._wake()

    def withdraw(self) -> None:
        """Nobody waits for the outcome any more; who waited is woken to be told so."""
        if not self._done:
            self._prompt = False  # who withdraws is in the middle of something
            self._wake()

    def then(self, resume: Callable[[], None], context: Context) -> None:
        """For whoever runs the coroutine: how it goes on."""
        self._resume, self._context = resume, context

    def _wake(self) -> None:
        if self._done:
            raise asyncio.InvalidStateError("the outcome is there already")
        self._done = True
        # Let go of who waited: he holds this ticket, and a circle is left to the collector, whose
        # rounds over tens of thousands of them keep everybody waiting.
        resume, self._resume = self._resume, None
        if resume is None:
            return
        loop = asyncio.get_running_loop()
        if self._prompt and asyncio.current_task(loop) is None:  # else it would take that for its
            self._context.run(resume)
        else:
            loop.call_soon(resume, context=self._context)

    def __await__(self) -> Generator[Any, None, T]:
        if not self._done:
            yield self
        if self._error is not None:
            raise self._error
        return self._result


Waiter = asyncio.Future[T] | Ticket[T]


def waiter(prompt: bool = False) -> Waiter[Any]:
    """What the calling coroutine may await: a future where it is in a task, else a ticket."""
    loop = asyncio.get_running_loop()
    return Ticket(prompt) if asyncio.current_task(loop) is None else loop.create_future()


async def within(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    """What ``work`` comes to, or ``TimeoutError``. asyncio's own deadlines interrupt a task, and
    the calling coroutine may be in none: so the work gets one."""

    async def limited() -> T:
        async with asyncio.timeout(seconds):
            return await work()

    return await asyncio.create_task(limited())
