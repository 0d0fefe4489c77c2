"""Audit sinks: a log that a thread writes, and a webhook that is called in batches.

``auditor.py`` puts events into them without waiting; a full sink refuses an event, and lost events
are counted. An event that cannot be encoded is dropped, and the events after it are written. The
text of an event is made in ``event_text.py``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from typing import ClassVar, NamedTuple, Protocol

from instar.base.fast_dataclass import dataclass
from instar.base.metrics import Counter
from instar.base.supervision import (
    SupervisedTask,
    SupervisedThread,
    Supervision,
    report_failure,
    resting,
)
from instar.server.audit.event_text import event_list, json_line, legacy_line, short_line
from instar.server.audit.logfile import LogOutput, Unwritten
from instar.server.audit.request_record import AuditEvent

log = logging.getLogger(__name__)
_AT_ONCE = 500
_COMPLAIN_SECONDS = 10.0
_CALLS_AT_ONCE = 15
_ATTEMPTS, _FACTOR = 5, 1.5
_FAREWELL_SECONDS = 5.0
_STALLED_SECONDS = 30.0
"""A write to the log that takes longer has stalled; all other events wait for it."""
LOG, WEBHOOK = "audit-log", "audit-webhook"


class Sink(Protocol):
    """Where audit events are sent."""

    confirms: ClassVar[bool]
    """Whether ``stored`` is called; a caller must not wait for it otherwise."""

    def put(self, event: AuditEvent, stored: Callable[[bool], None] | None = None) -> bool:
        """Queue an event. Returns False if the sink is full. ``stored`` is called from any thread
        with whether it was written."""
        ...

    @property
    def crowded(self) -> bool:
        """Whether the queue is half full; requests that can wait then wait."""
        ...

    def start(self, supervision: Supervision) -> None: ...

    async def stop(self) -> None:
        """Write queued events for at most a few seconds, then end."""
        ...


class _Item(NamedTuple):
    event: AuditEvent
    stored: Callable[[bool], None] | None


class LossReporter:
    """Counts lost events, and logs them periodically instead of one by one."""

    def __init__(self, plugin: str, errors: Counter) -> None:
        self._plugin, self._errors = plugin, errors
        self._next = 0.0

    def lost(self, number: int, why: str) -> None:
        self._errors.add((self._plugin,), number)
        if monotonic() >= self._next:
            self._next = monotonic() + _COMPLAIN_SECONDS
            log.error("%d audit events were not recorded (%s): %s", number, self._plugin, why)


class LogSink:
    """Writes events to the log in its own thread."""

    confirms: ClassVar[bool] = True

    def __init__(
        self, output: LogOutput, errors: Counter, *, legacy: bool, room: int, longest: int
    ) -> None:
        self._output = output
        self._legacy, self._room, self._longest = legacy, room, longest
        self._complaints = LossReporter("log", errors)
        self._overflow = LossReporter("buffered", errors)
        self._truncation = LossReporter("truncate", errors)
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._thread: SupervisedThread | None = None
        self._writing_since = 0.0
        """When the current batch was begun; 0 while there is none."""
        self._more = True

    @property
    def crowded(self) -> bool:
        return self._queue.qsize() * 2 >= self._room

    def put(self, event: AuditEvent, stored: Callable[[bool], None] | None = None) -> bool:
        if self._queue.qsize() >= self._room:
            self._overflow.lost(1, "audit buffer queue blocked")
            return False
        self._queue.put(_Item(event, stored))
        return True

    def start(self, supervision: Supervision) -> None:
        self._thread = supervision.keep_thread(LOG, self._work)
        supervision.watch(f"{LOG}-writing", self._stalled)

    async def stop(self) -> None:
        if self._thread is None:
            return
        self._queue.put(None)
        await asyncio.to_thread(self._thread.stop, _FAREWELL_SECONDS)

    def _stalled(self) -> str | None:
        since = self._writing_since
        stalled = since and monotonic() - since > _STALLED_SECONDS
        return "the audit log has stalled" if stalled else None

    def _work(self) -> None:
        while self._more:
            with resting():
                item = self._queue.get()
            batch: list[_Item] = []
            while item is not None:
                batch.append(item)
                if len(batch) >= _AT_ONCE:
                    break
                try:
                    item = self._queue.get_nowait()
                except Empty:
                    break
            else:
                self._more = False
            self._write(batch)
        self._output.close()

    def _write(self, batch: list[_Item]) -> None:
        self._writing_since = monotonic()
        try:
            self._write_all(batch)
        except Exception as error:
            report_failure(LOG, error)
            self._complaints.lost(len(batch), f"{type(error).__name__}: {error}")
            for item in batch:
                _report_stored(item, False)  # a second call has no effect
        finally:
            self._writing_since = 0.0

    def _write_all(self, batch: list[_Item]) -> None:
        lines, owners = [], []
        for item in batch:
            line = self._line(item.event)
            if line is not None:
                lines.append(line)
                owners.append(item)
            else:
                _report_stored(item, False)
        lost = 0
        try:
            self._output.write(lines)
        except Unwritten as error:
            lost = error.lines
            self._complaints.lost(lost, str(error))
        for number, item in enumerate(owners):
            _report_stored(item, number < len(owners) - lost)

    def _line(self, event: AuditEvent) -> bytes | None:
        try:
            if self._legacy:
                return legacy_line(event) + b"\n"
            line = shown_line(event, LOG, typed=True, most=self._longest)
        except Exception as error:
            report_failure(LOG, error, event.trail.id)
            self._complaints.lost(1, f"{type(error).__name__}: {error}")
            return None
        if line is None:
            self._truncation.lost(1, "an event is too large even without its objects")
            return None
        return line + b"\n"


def shown_line(event: AuditEvent, part: str, *, typed: bool, most: int) -> bytes | None:
    """Return the event as JSON, without its objects where these cannot be encoded. Raises if the
    rest cannot be encoded either."""
    try:
        return json_line(event, typed=typed, most=most)
    except Exception as error:
        report_failure(part, error, event.trail.id)
        return short_line(event, typed=typed, most=most)


def _report_stored(item: _Item, stored: bool) -> None:
    if item.stored is not None:
        try:
            item.stored(stored)
        except Exception as error:  # its event loop is closed
            report_failure(LOG, error, item.event.trail.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """Limits of the batches that are sent to the audit webhook: size, wait and rate."""

    room: int = 10_000
    most: int = 400
    wait: float = 30.0
    throttled: bool = True
    per_second: float = 10.0
    burst: int = 15


class AuditWebhookCaller(Protocol):
    """Sends batches of events to the audit webhook."""

    async def post(self, body: bytes) -> None:
        """Raises ``OSError`` or ``TimeoutError`` if the webhook did not accept it."""
        ...

    async def close(self) -> None: ...


class WebhookSink:
    """Sends events to a webhook in batches, with retries and a rate limit."""

    confirms: ClassVar[bool] = False

    def __init__(
        self,
        caller: AuditWebhookCaller,
        errors: Counter,
        batching: Batching,
        *,
        backoff: float,
        longest: int,
    ) -> None:
        self._caller, self._batching, self._backoff = caller, batching, backoff
        self._longest = longest
        self._complaints = LossReporter("webhook", errors)
        self._truncation = LossReporter("truncate", errors)
        self._overflow = LossReporter("buffered", errors)
        self._queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._calls: set[asyncio.Task[None]] = set()
        self._kept: SupervisedTask | None = None
        self._tokens, self._filled = float(batching.burst), monotonic()
        self._ending = asyncio.Event()

    @property
    def crowded(self) -> bool:
        return False  # events that the webhook does not accept in time are dropped

    def put(self, event: AuditEvent, stored: Callable[[bool], None] | None = None) -> bool:
        if self._queue.qsize() >= self._batching.room:
            self._overflow.lost(1, "audit buffer queue blocked")
            return False
        self._queue.put_nowait(_Item(event, stored))
        return True

    def start(self, supervision: Supervision) -> None:
        self._kept = supervision.keep(WEBHOOK, self._work)

    async def stop(self) -> None:
        self._ending.set()
        if self._kept is not None:
            await asyncio.wait([self._kept.task], timeout=_FAREWELL_SECONDS)
            await self._kept.stop()
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await self._caller.close()

    async def _work(self) -> None:
        while not (self._ending.is_set() and self._queue.empty()):
            batch = await self._batch()
            if not batch:
                continue
            await self._turn()
            while len(self._calls) >= _CALLS_AT_ONCE:
                await asyncio.wait(self._calls, return_when=asyncio.FIRST_COMPLETED)
            call = asyncio.get_running_loop().create_task(self._deliver(batch))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
        if self._calls:
            await asyncio.wait(self._calls, timeout=_FAREWELL_SECONDS)

    async def _batch(self) -> list[_Item]:
        """Collect events until there are enough or the first has waited long enough."""
        first = await self._next(None)
        if first is None:
            return []
        batch, deadline = [first], monotonic() + self._batching.wait
        while len(batch) < self._batching.most:
            item = await self._next(deadline - monotonic())
            if item is None:
                break
            batch.append(item)
        return batch

    async def _next(self, seconds: float | None) -> _Item | None:
        if not self._queue.empty():
            return self._queue.get_nowait()
        if self._ending.is_set() or (seconds is not None and seconds <= 0):
            return None
        loop = asyncio.get_running_loop()
        getting = loop.create_task(self._queue.get())
        ending = loop.create_task(self._ending.wait())
        with resting():
            done, _ = await asyncio.wait(
                [getting, ending], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        ending.cancel()
        if getting in done:
            return getting.result()
        getting.cancel()
        return None

    async def _turn(self) -> None:
        """Wait for the rate limit of calls."""
        batching = self._batching
        if not batching.throttled:
            return
        now = monotonic()
        filled = self._tokens + (now - self._filled) * batching.per_second
        self._tokens, self._filled = min(float(batching.burst), filled), now
        self._tokens -= 1
        if self._tokens < 0 and not self._ending.is_set():
            await asyncio.sleep(-self._tokens / batching.per_second)

    async def _deliver(self, batch: list[_Item]) -> None:
        try:
            await self._deliver_all(batch)
        except Exception as error:
            report_failure(WEBHOOK, error)
            self._complaints.lost(len(batch), f"{type(error).__name__}: {error}")

    async def _deliver_all(self, batch: list[_Item]) -> None:
        body, kept = await asyncio.to_thread(self._encoded, batch)
        delay, problem = self._backoff, ""
        for attempt in range(_ATTEMPTS):
            try:
                await self._caller.post(body)
                return
            except (OSError, TimeoutError) as error:
                problem = str(error)
            if self._ending.is_set() or attempt == _ATTEMPTS - 1:
                break
            await asyncio.sleep(delay)
            delay *= _FACTOR
        self._complaints.lost(kept, problem)

    def _encoded(self, batch: list[_Item]) -> tuple[bytes, int]:
        lines = []
        for item in batch:
            try:
                line = shown_line(item.event, WEBHOOK, typed=False, most=self._longest)
            except Exception as error:
                report_failure(WEBHOOK, error, item.event.trail.id)
                self._complaints.lost(1, f"{type(error).__name__}: {error}")
                continue
            if line is None:
                self._truncation.lost(1, "an event is too large even without its objects")
            else:
                lines.append(line)
        return event_list(lines), len(lines)
