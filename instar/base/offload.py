"""Runs work in the event loop or in a thread, by its cost: the only place that decides which.

Request handling (``server/``), the registry's verbs and the tools cut their work into synchronous
segments between awaits and pass each to ``run``. ``is_small`` is the decision: cheap work runs at
once in the event loop, costly work in a thread, so that it does not delay other requests. A segment
must not use the event loop or the store, nor values that other tasks change meanwhile. Work made of
many small steps takes ``Breaks``.
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

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class Outgrown(Exception):
    """A step of the event loop grew larger than its input: it is to be done again in a thread."""


class _Step(local):
    """Per thread: whether the current work may raise ``Outgrown``, because it delays the event loop
    and can be done again."""

    brief = False


STEP = _Step()


def briefly(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Run small work at once. Raises ``Outgrown`` where it turns out to be large; the work must be
    such that it can be done again after that."""
    STEP.brief = True
    try:
        return work(*arguments)
    finally:
        STEP.brief = False


class _Threads:
    """Bounded thread pool for costly segments, created on first use. It has few threads, because
    they share one interpreter lock."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._unfinished = 0
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[*Arguments], T], *arguments: *Arguments) -> Future[T]:
        with self._lock:
            if self._unfinished >= limits.LARGE_AT_ONCE + limits.LARGE_WAITING:
                raise TooManyRequests(
                    "too many large requests are being worked on, please try again later"
                )
            self._unfinished += 1
            if self._executor is None:
                self._executor = ThreadPoolExecutor(limits.LARGE_AT_ONCE, "large")
        future = self._executor.submit(work, *arguments)
        future.add_done_callback(self._finished)
        return future

    def _finished(self, future: Future[Any]) -> None:
        with self._lock:
            self._unfinished -= 1


_THREADS = _Threads()


def is_small(cost: int) -> bool:
    """Return whether work may run in the event loop. ``cost`` is in bytes of plain objects: the
    object's size, multiplied where its schema makes the work dearer
    (``VersionServing.check_cost``)."""
    return cost <= limits.LOOP_BYTES


async def run(cost: int, work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Return ``work(*arguments)``, run in the event loop or, where ``cost`` is high, in a thread.
    Work that raises ``Outgrown`` in the event loop is done again in a thread.

    Raises what ``work`` raises, and ``TooManyRequests`` where the queue for threads is full.
    """
    if cost <= limits.LOOP_BYTES:
        STEP.brief = True  # as in ``briefly``, without a call for each segment
        try:
            return work(*arguments)
        except Outgrown:
            pass
        finally:
            STEP.brief = False
    return await apart(work, *arguments)


async def apart(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Run ``work`` in a thread whatever it costs. If the caller is cancelled, the thread finishes
    the work and its result is dropped."""
    return await asyncio.wrap_future(_THREADS.submit(work, *arguments))


class Breaks:
    """Gives the event loop back between the small steps of long work."""

    def __init__(self) -> None:
        self._since = monotonic()

    async def between(self) -> None:
        """Let other tasks run if the steps since the last break took ``TURN_SECONDS``."""
        if monotonic() - self._since > limits.TURN_SECONDS:
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
