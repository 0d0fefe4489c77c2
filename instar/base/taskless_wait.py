"""Waiting for one result without an asyncio task.

A request starts without a task (``eager_tasks.py``), because a task costs more than handling most
requests. A coroutine that waits for one result of a callback need not become a task either: it
awaits a ``Ticket``, and ``eager_tasks.py`` resumes it when the result is set. Used by the stores,
the watch cache and the gRPC client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextvars import Context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Ticket(Generic[T]):
    """Like a future, for the one coroutine without a task that awaits it.

    The coroutine resumes in the next iteration of the event loop. With ``prompt`` it resumes inside
    the call that sets the result, unless a task makes that call; the code that makes the call must
    expect to be re-entered.
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
        """Cancel the wait and resume the waiting coroutine."""
        if not self._done:
            self._prompt = False  # the caller is in the middle of a step
            self._wake()

    def then(self, resume: Callable[[], None], context: Context) -> None:
        """Set the callback that resumes the coroutine. Called by its runner."""
        self._resume, self._context = resume, context

    def _wake(self) -> None:
        if self._done:
            raise asyncio.InvalidStateError("the outcome is there already")
        self._done = True
        # Drop the reference to the waiting coroutine, which refers to this ticket: a cycle is left
        # to the garbage collector, and its runs over tens of thousands of them delay all requests.
        resume, self._resume = self._resume, None
        if resume is None:
            return
        loop = asyncio.get_running_loop()
        # a resumed coroutine must not run inside another's task
        if self._prompt and asyncio.current_task(loop) is None:
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
    """Return an awaitable for the calling coroutine: a future inside a task, else a ticket."""
    loop = asyncio.get_running_loop()
    return Ticket(prompt) if asyncio.current_task(loop) is None else loop.create_future()


async def with_timeout(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``work`` or raise ``TimeoutError``.

    asyncio's own timeouts interrupt a task, and the calling coroutine may have none, so the work
    gets one.
    """

    async def limited() -> T:
        async with asyncio.timeout(seconds):
            return await work()

    return await asyncio.create_task(limited())
