"""Single flight: concurrent requests for the same work share one task.

``server/endpoints`` uses it for documents, ``server/access/webhook_authorizer.py`` and
``server/cluster_home`` for questions to another server. A request that is cancelled does not cancel
the task; results are not kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class SingleFlight:
    """Tasks in progress, by key."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}

    async def once(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(make())
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        found: T = await asyncio.shield(task)
        return found
