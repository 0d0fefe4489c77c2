"""Coalesced call: concurrent callers share the next call instead of making one each.

Used by ``etcd/store.py`` and ``postgres/store.py`` for the current revision. A caller only gets the
answer of a call that was sent after its own request, because an older answer may be stale.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from instar.base.eager_tasks import FutureDriven
from instar.base.taskless_wait import Waiter, waiter

T = TypeVar("T")

_CONCURRENT_CALLS = 2
"""Maximum number of calls in flight, where calls do not wait for each other. With one, a caller
that just missed it would wait for two calls. More than two did not help in measurements."""


class CoalescedCall(Generic[T]):
    """A call with one answer for all callers that arrived before it was sent.

    A call starts at the end of the event loop iteration in which it was requested, and has no task.
    """

    def __init__(
        self, call: Callable[[], Awaitable[T]], concurrent: int = _CONCURRENT_CALLS
    ) -> None:
        self._call, self._concurrent = call, concurrent
        self._waiting: list[Waiter[T]] = []
        self._due = False  # whether a call is scheduled for the end of this loop iteration
        self._running = 0

    async def get(self) -> T:
        mine: Waiter[T] = waiter(prompt=True)
        self._waiting.append(mine)
        if not self._due and self._running < self._concurrent:
            self._due = True
            asyncio.get_running_loop().call_soon(self._begin)
        return await mine

    def _begin(self) -> None:
        self._due = False
        self._running += 1
        waiting, self._waiting = self._waiting, []
        FutureDriven(self._share(waiting))

    async def _share(self, waiting: list[Waiter[T]]) -> None:
        failure: BaseException | None = None
        try:
            found = await self._call()
        except (Exception, asyncio.CancelledError) as error:
            failure = error
        self._running -= 1
        if self._waiting and not self._due:
            # Start the next call first: the callers below prepare their responses while it is in
            # flight.
            self._begin()
        for each in waiting:
            if each.done():
                continue  # skip a cancelled caller, the others still get the answer
            if failure is None:
                each.set_result(found)
            else:
                each.set_exception(failure)
