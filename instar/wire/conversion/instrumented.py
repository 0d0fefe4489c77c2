"""Measures conversions: durations and counts around any converter, and per-request waiting time.

``factory.py`` wraps converters with it; ``server/app.py`` opens a ``request_clock`` per request.
The metrics implement the protocol ``ConversionMetrics``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol

from instar.base.errors import TooManyRequests
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.wire.conversion.converter import VersionConverter
from instar.wire.conversion.failure import ConversionFailed, FailureType


@dataclass(frozen=True, slots=True)
class Measurement:
    """One conversion of objects that are all at the same version."""

    crd: str
    webhook: str
    from_version: str
    to_version: str
    objects: int
    seconds: float
    failure_type: FailureType | None
    """None is success; ``FailureType.NONE`` a failure upstream has no label for."""
    timed_out: bool = False
    failure_text: str = ""


class ConversionMetrics(Protocol):
    def converted(self, measurement: Measurement) -> None: ...

    def count_lookups(self, crd: str, *, hits: int, misses: int, shared: int) -> None:
        """Count cache hits, conversions, and objects shared with another caller's call."""
        ...

    def request_waited(self, crd: str, seconds: float) -> None:
        """Record the total conversion time of one request."""
        ...

    def turned_away(self, crd: str, webhook: str) -> None:
        """Count a conversion rejected because too many wait for the webhook."""
        ...


class NoMetrics:
    """For callers that count nothing."""

    def converted(self, measurement: Measurement) -> None:
        pass

    def count_lookups(self, crd: str, *, hits: int, misses: int, shared: int) -> None:
        pass

    def request_waited(self, crd: str, seconds: float) -> None:
        pass

    def turned_away(self, crd: str, webhook: str) -> None:
        pass


class MeasuredConverter:
    """A ``VersionConverter`` that measures an inner one. Calls that convert nothing do not
    count."""

    def __init__(
        self, inner: VersionConverter, metrics: ConversionMetrics, *, crd: str, webhook: str
    ) -> None:
        self._inner = inner
        self._metrics = metrics
        self._crd = crd
        self._webhook = webhook

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        started = time.perf_counter()
        try:
            converted = await self._inner.convert(objects, api_version)
        except ConversionFailed as failure:
            self._record(objects, api_version, started, failure)
            raise
        except TooManyRequests:
            self._metrics.turned_away(self._crd, self._webhook)
            raise
        self._record(objects, api_version, started, None)
        return converted

    def _record(
        self,
        objects: Sequence[Object],
        api_version: str,
        started: float,
        failure: ConversionFailed | None,
    ) -> None:
        seconds = time.perf_counter() - started
        counts: dict[str, int] = {}
        for obj in objects:
            source = obj.get("apiVersion", "")
            counts[source] = counts.get(source, 0) + 1
        counts.pop(api_version, None)
        for source, count in counts.items():
            self._metrics.converted(
                Measurement(
                    crd=self._crd,
                    webhook=self._webhook,
                    from_version=source.rpartition("/")[2],
                    to_version=api_version.rpartition("/")[2],
                    objects=count,
                    seconds=seconds,
                    failure_type=failure.failure_type if failure else None,
                    timed_out=failure.timed_out if failure else False,
                    failure_text=failure.message if failure else "",
                )
            )


class RequestClock:
    """Time that one request has waited for conversions so far."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


_clock: ContextVar[RequestClock | None] = ContextVar("conversion_clock", default=None)


@contextmanager
def request_clock() -> Iterator[RequestClock]:
    """Collect the conversion time while the block runs."""
    clock, outer = RequestClock(), _clock.get()
    _clock.set(clock)
    try:
        yield clock
    finally:
        # Not by token: a request may begin outside a task and end within one.
        _clock.set(outer)


class waiting:  # noqa: N801 - used as a function: `with waiting():`
    """Adds the time in the block to the current request's clock, if there is one."""

    __slots__ = ("_clock", "_started")

    def __enter__(self) -> None:
        self._clock = _clock.get()
        self._started = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._clock is not None:
            self._clock.seconds += time.perf_counter() - self._started
