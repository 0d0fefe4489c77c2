"""Limits of concurrent and waiting calls per webhook.

Used by ``transport.py``, ``wire/conversion`` and the in-process admission webhooks. Without the
limit on waiting, every reader of a CRD with a hanging webhook would occupy a connection and memory;
beyond that limit readers get 429.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from instar.base.errors import TooManyRequests


class CallerLimit:
    """``with limit``: at most ``calls`` plus ``waiting`` callers; further ones get 429.

    For callers that share calls, where only their total matters.
    """

    def __init__(self, name: str, calls: int, waiting: int) -> None:
        self._name = name
        self._calls = calls
        self._waiting = waiting
        self.inside = 0

    @property
    def full(self) -> bool:
        return self.inside >= self._calls + self._waiting

    def __enter__(self) -> None:
        if self.full:
            raise _full(self._name, self._calls, self._waiting)
        self.inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.inside -= 1


def _full(name: str, calls: int, waiting: int) -> TooManyRequests:
    return TooManyRequests(
        f"too many conversions wait for {name}: {calls} are running and {waiting} are waiting; "
        "please try again later",
        retry_after=1,
    )


class Gate:
    """``async with gate``: at most ``calls`` inside and ``waiting`` queued; others get 429.

    ``name`` appears in the error of a rejected caller.
    """

    def __init__(self, name: str, calls: int, waiting: int) -> None:
        self._name = name
        self.calls = calls
        self.most_waiting = waiting
        self.inside = 0
        self.waiting = 0
        self._slots = asyncio.Semaphore(calls)

    async def __aenter__(self) -> None:
        if self._slots.locked() and self.waiting >= self.most_waiting:
            raise _full(self._name, self.calls, self.most_waiting)
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        self.inside += 1

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.inside -= 1
        self._slots.release()
