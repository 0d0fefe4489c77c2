"""Work that input can make long leaves the event loop: one rule and one set of threads for all.

``await run(size, work)`` is nearly the whole of it: small work is done here and now, large work in
a thread, where it shares the processor with everybody else instead of holding everybody up. What
is handed over must be pure: no event loop, no store, nothing that others change meanwhile. Work in
many small steps takes ``Breaks``.
Knows nothing of what the work is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

from instar.base import limits
from instar.base.errors import TooManyRequests

T = TypeVar("T")


class _Threads:
    """Few, since one processor's worth of Python is all there is; made when first needed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._unfinished = 0
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self._unfinished >= limits.LARGE_AT_ONCE + limits.LARGE_WAITING:
                raise TooManyRequests(
                    "too many large requests are being worked on, please try again later"
                )
            self._unfinished += 1
            if self._executor is None:
                self._executor = ThreadPoolExecutor(limits.LARGE_AT_ONCE, "large")
        future = self._executor.submit(work)
        future.add_done_callback(self._finished)
        return future

    def _finished(self, future: Future[Any]) -> None:
        with self._lock:
            self._unfinished -= 1


_THREADS = _Threads()


def is_small(size: int) -> bool:
    """Whether work on so many bytes may be done at once. Asked by those on the hot path, whom a
    coroutine for nothing would cost more than their work; the others ``run`` it."""
    return size <= limits.LOOP_BYTES


async def run(size: int, work: Callable[[], T]) -> T:
    """The result of ``work`` on about so many bytes. Raises what it raises, and
    ``TooManyRequests`` where so much waits already that it would only be late."""
    if size <= limits.LOOP_BYTES:
        return work()
    return await apart(work)


async def apart(work: Callable[[], T]) -> T:
    """In a thread whatever its size. If the caller is cancelled it ends by itself."""
    return await asyncio.wrap_future(_THREADS.submit(work))


class Breaks:
    """For work in the loop whose steps are small, and may be many."""

    def __init__(self) -> None:
        self._since = monotonic()

    async def between(self) -> None:
        """Two steps: others have their turn when the steps have taken long together."""
        if monotonic() - self._since > limits.TURN_SECONDS:
            await asyncio.sleep(0)
            self._since = monotonic()
