"""Parts of a server (port, store, controllers): named, started in order, stopped in reverse.

``lifetime.py`` (a server behind a port) and ``embedded.py`` (a server in this process) list their
parts and start them here. What a part does is described in the module that makes it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Protocol

from instar.base.fast_dataclass import dataclass
from instar.base.supervision import SupervisedTask, Supervision

log = logging.getLogger(__name__)
PartAction = Callable[[], Awaitable[None] | None]


def _no_op() -> None:
    return None


@dataclass(frozen=True)
class Part:
    """A port, a store, a controller, a task: anything that must be stopped if it was started."""

    name: str
    """Shown to the operator; unique within a server."""
    start: PartAction = _no_op
    stop: PartAction = _no_op
    """Called once ``start`` was called, also when that raised half-way."""


class Startable(Protocol):
    """A component that is a part by itself: most controllers."""

    def start(self) -> Awaitable[None] | None: ...

    def stop(self) -> Awaitable[None] | None: ...


async def start_parts(parts: Iterable[Part], stack: AsyncExitStack) -> None:
    """Start the parts one after the other. The stack stops them in the opposite order: all of
    them at the end, or those that were begun when one cannot be started."""
    for part in parts:
        stack.push_async_exit(_stopper(part))
        await _call(part.start)


Stopper = Callable[
    [type[BaseException] | None, BaseException | None, TracebackType | None], Awaitable[None]
]


def _stopper(part: Part) -> Stopper:
    async def stop(
        _: type[BaseException] | None, reason: BaseException | None, __: TracebackType | None
    ) -> None:
        """A part that cannot be stopped does not hide why the server stops."""
        try:
            await _call(part.stop)
        except Exception:
            if reason is None:
                raise
            log.exception("%s could not be stopped; the other parts are stopped anyway", part.name)

    return stop


async def _call(action: PartAction) -> None:
    result = action()
    if result is not None:
        await result


def background_task(
    name: str, run: Callable[[], Coroutine[Any, Any, None]], supervision: Supervision
) -> Part:
    """A coroutine that runs from the start of the part until its stop, and again if it fails."""
    tasks: list[SupervisedTask] = []

    def start() -> None:
        tasks.append(supervision.keep(name.replace(" ", "-"), run))

    async def stop() -> None:
        for task in tasks:
            await task.stop()

    return Part(name, start, stop)
