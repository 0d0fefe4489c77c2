"""Run a coroutine at once, and only make a task of it if it really has to wait.

Most requests are answered from memory without waiting for anything; a task for each would cost
more than the answer. (From Python 3.12 on, asyncio's eager tasks do the same.) Code run this way
must not ask for the current task before its first wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


def start(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """None when it is through already, else a task that goes on from the first wait."""
    try:
        waiting_for = coroutine.send(None)
    except StopIteration:
        return None
    return asyncio.get_running_loop().create_task(_Rest(coroutine, waiting_for))


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
