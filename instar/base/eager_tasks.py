"""Run a coroutine at once, and only make a task of it if it really has to wait.

Most requests are answered from memory without waiting for anything; a task for each would cost
more than the answer. (From Python 3.12 on, asyncio's eager tasks do the same.) What waits for a
ticket (``taskless_wait.py``) goes on without a task, too. Code run this way must not ask for the
current
task before its first wait for something else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any

from instar.base.taskless_wait import Ticket


def start(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | Parked | None:
    """None when it is through already, else what goes on from the first wait."""
    try:
        waiting_for = coroutine.send(None)
    except StopIteration:
        return None
    if isinstance(waiting_for, Ticket):
        return Parked(coroutine, waiting_for)
    return asyncio.get_running_loop().create_task(_Rest(coroutine, waiting_for))


class Parked:
    """A coroutine that waits for a ticket; can be cancelled as a task can."""

    __slots__ = ("_cancelled", "_context", "_coroutine", "_task", "_ticket")

    def __init__(self, coroutine: Coroutine[Any, Any, None], ticket: Ticket[Any]) -> None:
        self._coroutine, self._ticket = coroutine, ticket
        self._context = copy_context()  # as a task would have
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        ticket.then(self._go_on, self._context)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:
            self._cancelled = True
            self._ticket.withdraw()

    def _go_on(self) -> None:
        try:
            waiting_for = self._step()
        except (StopIteration, asyncio.CancelledError):
            return
        except Exception as error:
            # Not to whoever has brought the outcome: he may have more to tell.
            report = {"message": "a request has failed on its way", "exception": error}
            asyncio.get_running_loop().call_exception_handler(report)
            return
        if isinstance(waiting_for, Ticket):
            self._ticket = waiting_for
            waiting_for.then(self._go_on, self._context)
        else:
            rest = _Rest(self._coroutine, waiting_for)
            self._task = asyncio.get_running_loop().create_task(rest)

    def _step(self) -> Any:
        if not self._cancelled:
            return self._coroutine.send(None)
        self._cancelled = False
        return self._coroutine.throw(asyncio.CancelledError())


class _Rest(Coroutine[Any, Any, None]):
    """What is left of a started coroutine, as a coroutine: its first step is the wait it is in,
    which a cancellation must reach although the task has not made a step of its own."""

    __slots__ = ("_coroutine", "_waiting_for")

    def __init__(self, coroutine: Coroutine[Any, Any, None], waiting_for: Any) -> None:
        self._coroutine = coroutine
        self._waiting_for = waiting_for

    def send(self, value: Any) -> Any:
        waiting_for, self._waiting_for = self._waiting_for, self
        return self._coroutine.send(value) if waiting_for is self else waiting_for

    def throw(self, *failure: Any) -> Any:
        self._waiting_for = self
        return self._coroutine.throw(*failure)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, None]:
        raise TypeError("only a task goes on with it")
