"""Eager task start: runs a coroutine at once and creates a task only if it has to wait.

Called by ``server/http`` for each request and by ``wire/storage`` for calls that requests share.
Most requests are answered from memory without waiting, and a task would cost more than the answer.
(Eager tasks of Python 3.12 do the same.) A coroutine that waits for a ``Ticket``
(``taskless_wait.py``) resumes without a task, too. Code run this way must not use the current task
before it has waited for something other than a ``Ticket``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from typing import Any

from instar.base.taskless_wait import Ticket


def start(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | TasklessCoroutine | None:
    """Run the coroutine to its first wait. Return None if it has finished, else the task or
    ``TasklessCoroutine`` that runs the rest."""
    try:
        waiting_for = coroutine.send(None)
    except StopIteration:
        return None
    if isinstance(waiting_for, Ticket):
        return TasklessCoroutine(coroutine, waiting_for)
    return asyncio.get_running_loop().create_task(_Continuation(coroutine, waiting_for))


class TasklessCoroutine:
    """A coroutine without a task that waits for a ticket; it can be cancelled like a task."""

    __slots__ = ("_cancelled", "_context", "_coroutine", "_task", "_ticket")

    def __init__(self, coroutine: Coroutine[Any, Any, None], ticket: Ticket[Any]) -> None:
        self._coroutine, self._ticket = coroutine, ticket
        self._context = copy_context()  # the context that a task would copy
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
            # Report here: raising into the code that set the result could stop it midway.
            report = {
                "message": "a request failed after its first wait; its connection gets no answer",
                "exception": error,
            }
            asyncio.get_running_loop().call_exception_handler(report)
            return
        if isinstance(waiting_for, Ticket):
            self._ticket = waiting_for
            waiting_for.then(self._go_on, self._context)
        else:
            rest = _Continuation(self._coroutine, waiting_for)
            self._task = asyncio.get_running_loop().create_task(rest)

    def _step(self) -> Any:
        if not self._cancelled:
            return self._coroutine.send(None)
        self._cancelled = False
        return self._coroutine.throw(asyncio.CancelledError())


class FutureDriven:
    """A coroutine that runs without a task through waits for futures and tickets alike.

    ``wire/storage/postgres`` runs its batches like this, because a task would begin in the next
    iteration of the event loop, and callers that it resumes could not continue at once.
    """

    __slots__ = ("_context", "_coroutine", "_waiting_for")

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self._context = copy_context()
        self._waiting_for: Any = None
        self._context.run(self._step)

    def cancel(self) -> None:
        waiting_for = self._waiting_for
        if isinstance(waiting_for, Ticket):
            waiting_for.set_exception(asyncio.CancelledError())
        elif waiting_for is not None:
            waiting_for.cancel()

    def _step(self, done: object = None) -> None:
        self._waiting_for = None
        try:
            waiting_for = self._coroutine.send(None)
        except (StopIteration, asyncio.CancelledError):
            return
        except Exception as error:
            report = {"message": "a coroutine without a task failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(report)
            return
        self._waiting_for = waiting_for
        if waiting_for is None:  # it gives up one iteration
            asyncio.get_running_loop().call_soon(self._step, context=self._context)
        elif isinstance(waiting_for, Ticket):
            waiting_for.then(self._step, self._context)
        else:
            waiting_for._asyncio_future_blocking = False
            waiting_for.add_done_callback(self._step, context=self._context)


class _Continuation(Coroutine[Any, Any, None]):
    """Continues a started coroutine inside a task.

    Its first step yields the future that the coroutine already waits for. A cancellation before
    that step cancels the future and waits for its end, as in a task: left alone, the future would
    go on, and its failure would have no reader.
    """

    __slots__ = ("_coroutine", "_waiting_for")

    def __init__(self, coroutine: Coroutine[Any, Any, None], waiting_for: Any) -> None:
        self._coroutine = coroutine
        self._waiting_for = waiting_for

    def send(self, value: Any) -> Any:
        waiting_for, self._waiting_for = self._waiting_for, self
        return self._coroutine.send(value) if waiting_for is self else waiting_for

    def throw(self, *failure: Any) -> Any:
        waiting_for, self._waiting_for = self._waiting_for, self
        if isinstance(waiting_for, asyncio.Future):
            if waiting_for.cancel():
                return waiting_for
            if not waiting_for.cancelled():
                waiting_for.exception()  # read here: the coroutine only learns of its cancellation
        return self._coroutine.throw(*failure)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, None]:
        raise TypeError("only a task goes on with it")
