"""Runs work in the event loop or in a thread, by its cost: the only place that decides which.

Request handling (``server/``), the registry's verbs and the tools cut their work into synchronous
segments between awaits and pass each to ``run``. ``is_small`` decides: cheap work runs at once in
the event loop, costly work in a thread, so that it does not delay other requests. A segment must
not use the event loop or the store, nor values that other tasks change at the same time. A long
loop of small steps uses ``Breaks`` to yield to the event loop. Background work has its own thread,
so that controllers do not wait while requests use all other threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock, local
from time import monotonic
from typing import Any, TypeVar, TypeVarTuple

from instar.base import limits
from instar.base.errors import TooManyRequests
from instar.base.supervision import STALLED_SECONDS, in_background, note_progress

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class TooLargeForLoop(Exception):
    """Work on the event loop grew larger than its input and must be repeated in a thread."""


class _Step(local):
    """Per thread: whether the current work may raise ``TooLargeForLoop``, because it delays the
    event loop and is repeatable."""

    brief = False


STEP = _Step()


def run_inline(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Run small work at once. Raises ``TooLargeForLoop`` if it turns out to be large; the work must
    be repeatable after that."""
    STEP.brief = True
    try:
        return work(*arguments)
    finally:
        STEP.brief = False


def run_if_small(cost: int, work: Callable[[*Arguments], T], *arguments: *Arguments) -> T | None:
    """Return ``work(*arguments)`` where that may run in the event loop; None where it must run in a
    thread, which code that cannot wait leaves to its caller. ``work`` never returns None."""
    if cost > limits.LOOP_BYTES:
        return None
    STEP.brief = True  # as in ``run_inline``, without a call
    try:
        return work(*arguments)
    except TooLargeForLoop:
        return None
    finally:
        STEP.brief = False


class _Threads:
    """Bounded thread pool for costly segments, created on first use. It has few threads, because
    they share one interpreter lock."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._name, self._at_once, self._room = name, threads, threads + waiting
        self._lock = Lock()
        self._unfinished: dict[Future[Any], None] = {}
        self._moved = 0.0
        """When the last segment was finished, or the first one given to idle threads."""
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[*Arguments], T], *arguments: *Arguments) -> Future[T]:
        with self._lock:
            if len(self._unfinished) >= self._room:
                raise TooManyRequests(
                    "too many large requests are being worked on, please try again later"
                )
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._at_once, self._name)
            if not self._unfinished:
                self._moved = monotonic()
            future = self._executor.submit(work, *arguments)
            self._unfinished[future] = None
        future.add_done_callback(self._finished)
        return future

    def trouble(self) -> str | None:
        """Return an error text if segments are pending and none has finished for a long time."""
        stalled = self._unfinished and monotonic() - self._moved > STALLED_SECONDS
        return f"the threads for {self._name} work have stalled" if stalled else None

    def _finished(self, future: Future[Any]) -> None:
        with self._lock:
            self._unfinished.pop(future, None)
            self._moved = monotonic()


_THREADS = _Threads("large", limits.LARGE_AT_ONCE, limits.LARGE_WAITING)
_BACKGROUND = _Threads("background", 1, limits.LARGE_BACKGROUND)


def trouble() -> str | None:
    """Return an error text if the threads have stalled, for ``/readyz``."""
    return _THREADS.trouble() or _BACKGROUND.trouble()


def is_small(cost: int) -> bool:
    """Return whether work may run in the event loop. ``cost`` is in bytes of plain objects: the
    object's size, multiplied where its schema makes the work more expensive
    (``VersionServing.check_cost``)."""
    return cost <= limits.LOOP_BYTES


async def run(cost: int, work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Return ``work(*arguments)``, run in the event loop or, where ``cost`` is high, in a thread.
    Work that raises ``TooLargeForLoop`` in the event loop is repeated in a thread.

    Raises what ``work`` raises, and ``TooManyRequests`` where the queue for threads is full.
    """
    if cost <= limits.LOOP_BYTES:
        STEP.brief = True  # as in ``run_inline``, without a call for each segment
        try:
            return work(*arguments)
        except TooLargeForLoop:
            pass
        finally:
            STEP.brief = False
    return await run_in_thread(work, *arguments)


async def run_in_thread(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Run ``work`` in a thread whatever it costs. If the caller is cancelled, the thread finishes
    the work and its result is dropped."""
    threads = _BACKGROUND if in_background() else _THREADS
    return await asyncio.wrap_future(threads.submit(work, *arguments))


class Breaks:
    """Yields to the event loop between the small steps of a long loop."""

    def __init__(self) -> None:
        self._since = monotonic()

    async def between(self) -> None:
        """Let other tasks run if the steps since the last break took ``TURN_SECONDS``."""
        if monotonic() - self._since > limits.TURN_SECONDS:
            note_progress()
            await asyncio.sleep(0)
            self._since = monotonic()


class LoopBytes:
    """Counts the bytes that one turn of the event loop has worked on."""

    def __init__(self) -> None:
        self._left = limits.LOOP_BYTES

    def is_spent(self, size: int) -> bool:
        """Add ``size`` bytes. Return whether other tasks should run before the next step."""
        self._left -= size
        if self._left > 0:
            return False
        self._left = limits.LOOP_BYTES
        return True
