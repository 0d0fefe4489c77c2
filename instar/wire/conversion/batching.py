"""Batches concurrent conversions into one ConversionReview per webhook call.

``factory.py`` wraps a webhook converter with it. A call costs more than the few objects in it, so
under load several writers share one call. A caller waits milliseconds at most for others; if a
shared call fails, each caller's objects are converted in a separate call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.wire.conversion.converter import VersionConverter
from instar.wire.conversion.failure import ConversionFailed
from instar.wire.webhooks.call_limits import CallerLimit

_WAIT_SECONDS = 0.01
"""Seconds to wait for the call in flight; a slower webhook gets the next call in parallel."""
_FULL_BATCH = 100
"""A caller with at least this many objects gets a call of its own; a shared call has at most so
many."""
_QUIET_TURNS = 3
"""Event loop iterations without a new caller after which a call is sent."""


class BatchingConverter:
    """A ``VersionConverter`` that batches the calls of an inner one."""

    def __init__(
        self,
        inner: VersionConverter,
        crowd: CallerLimit,
        turned_away: Callable[[], None] = lambda: None,
    ) -> None:
        """``turned_away`` is called for each caller rejected by the limit ``crowd``."""
        self._inner = inner
        self._crowd = crowd
        self._turned_away = turned_away
        self._lanes: dict[str, _VersionQueue] = {}

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        if all(obj.get("apiVersion") == api_version for obj in objects):
            return list(objects)
        lane = self._lanes.get(api_version)
        if lane is None:
            lane = self._lanes[api_version] = _VersionQueue(self._inner, api_version, self._crowd)
        if self._crowd.full:
            self._turned_away()
        with self._crowd:
            if len(objects) >= _FULL_BATCH:
                # asyncio deadlines need a separate task.
                return await asyncio.create_task(lane.at_once(objects))
            return await lane.join(objects)


class _Call:
    """The objects of one caller, and its waiter."""

    __slots__ = ("done", "flight", "objects")

    def __init__(self, objects: Sequence[Object]) -> None:
        self.objects = objects
        self.done: asyncio.Future[list[Object]] = asyncio.get_running_loop().create_future()
        self.flight: _Flight | None = None


class _Flight:
    """A ConversionReview with the objects of several callers; cancelled when no caller waits any
    more."""

    __slots__ = ("calls", "task")

    def __init__(self, calls: list[_Call]) -> None:
        self.calls = calls
        self.task: asyncio.Task[None] | None = None

    def left(self) -> None:
        if self.task is not None and all(call.done.done() for call in self.calls):
            self.task.cancel()


class _VersionQueue:
    """Queue of the conversions to one version."""

    def __init__(self, inner: VersionConverter, api_version: str, crowd: CallerLimit) -> None:
        self._inner = inner
        self._api_version = api_version
        self._crowd = crowd
        self._under_way = 0
        self._waiting: list[_Call] = []
        self._timer: asyncio.Handle | None = None

    async def at_once(self, objects: Sequence[Object]) -> list[Object]:
        self._under_way += 1
        try:
            return await self._inner.convert(objects, self._api_version)
        finally:
            self._under_way -= 1
            self._send_waiting()

    async def join(self, objects: Sequence[Object]) -> list[Object]:
        call = _Call(objects)
        self._waiting.append(call)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            if self._under_way:
                self._timer = loop.call_later(_WAIT_SECONDS, self._send_waiting)
            else:
                self._timer = loop.call_soon(self._send_when_quiet, 0, _QUIET_TURNS)
        try:
            return await call.done
        except asyncio.CancelledError:
            call.done.cancel()
            if call.flight is not None:
                call.flight.left()
            raise

    def _send_when_quiet(self, seen: int, turns: int) -> None:
        """Wait a few loop iterations while new callers arrive, then send the call."""
        here = len(self._waiting)
        if here == seen:
            turns -= 1
        if not turns or here >= _FULL_BATCH or self._crowd.inside == 1:
            self._send_waiting()
            return
        self._timer = asyncio.get_running_loop().call_soon(self._send_when_quiet, here, turns)

    def _send_waiting(self) -> None:
        """Send all waiting conversions."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        calls = [call for call in self._waiting if not call.done.done()]
        self._waiting = []
        while calls:
            count = _count_fitting(calls)
            flight = _Flight(calls[:count])
            calls = calls[count:]
            for call in flight.calls:
                call.flight = flight
            flight.task = asyncio.get_running_loop().create_task(self._run_call(flight))

    async def _run_call(self, flight: _Flight) -> None:
        """Run the call and break the reference cycle of callers and call at the end, so that its
        objects are freed without the garbage collector, which would pause the loop."""
        try:
            await self._convert_calls(flight.calls)
        finally:
            for call in flight.calls:
                call.flight = None

    async def _convert_calls(self, calls: list[_Call]) -> None:
        together = [obj for call in calls for obj in call.objects]
        try:
            converted = await self.at_once(together)
        except ApiError as failure:
            if len(calls) == 1 or _concerns_all(failure):
                _fail(calls, failure)
                return
            await asyncio.gather(
                *(self._convert_calls([call]) for call in calls if not call.done.done())
            )
            return
        except Exception as failure:
            _fail(calls, failure)
            return
        start = 0
        for call in calls:
            end = start + len(call.objects)
            if not call.done.done():
                call.done.set_result(converted[start:end])
            start = end


def _count_fitting(calls: Sequence[_Call]) -> int:
    size = 0
    for count, call in enumerate(calls):
        size += len(call.objects)
        if size > _FULL_BATCH:
            return max(1, count)
    return len(calls)


def _concerns_all(failure: ApiError) -> bool:
    """Return whether the failure applies to all callers. An unreachable webhook does; a refusal or
    an invalid answer may be caused by one caller's object."""
    if isinstance(failure, ConversionFailed):
        return failure.unreachable or failure.timed_out
    return True


def _fail(calls: Sequence[_Call], failure: Exception) -> None:
    for call in calls:
        if not call.done.done():
            told = failure
            if len(calls) > 1 and isinstance(failure, ConversionFailed):
                told = failure.about(call.objects)
            # Each caller raises its own copy, so that tracebacks do not accumulate.
            call.done.set_exception(told.with_traceback(None))
