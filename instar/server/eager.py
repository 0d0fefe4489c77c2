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
    return asyncio.get_running_loop().create_task(_go_on(_Rest(coroutine, waiting_for)))


async def _go_on(rest: _Rest) -> None:
    await rest


class _Rest:
    """What is left of a started coroutine, as something a task can await."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], waiting_for: Any) -> None:
        self._coroutine = coroutine
        self._waiting_for = waiting_for

    def __await__(self) -> Generator[Any, Any, None]:
        waiting_for = self._waiting_for
        while True:
            failure: BaseException | None = None
            sent: Any = None
            try:
                sent = yield waiting_for
            except BaseException as error:
                failure = error
            try:
                if failure is not None:
                    waiting_for = self._coroutine.throw(failure)
                else:
                    waiting_for = self._coroutine.send(sent)
            except StopIteration:
                return
