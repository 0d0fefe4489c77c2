"""Supervises background tasks and threads: restarts them when they fail, and counts failures.

Called by ``server/lifecycle`` and the controllers. A part is a task or a thread of a server that
runs without a request; each one runs under a ``Supervision``. When a part raises an exception, the
failure is logged and counted, and the part is started again after a pause. ``/readyz`` shows a part
that has stopped, keeps failing or has stalled. A part that processes a queue catches the exception
of one item itself, calls ``report_failure`` and continues with the next item.

A part waits for work inside ``rest`` or ``resting``. It has stalled when it has neither waited
there nor called ``note_progress`` for ``STALLED_SECONDS``.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any

from instar.base.metrics import Counter, Measured, Metric

log = logging.getLogger(__name__)
FAILURES = Counter(
    "instar_background_failures_total",
    "Unexpected failures of background work, by part. The part continues.",
    ("part",),
)
_LOG_SECONDS = 10.0
"""Minimum time between two log lines about one part; every failure is counted."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
_KEEPS_FAILING = 3
"""Failures in a row after which ``/readyz`` shows the part."""
_RECOVERED_SECONDS = 60.0
"""After this time without a failure a part counts as recovered."""
STALLED_SECONDS = 300.0
"""A step of background work that takes longer has stalled. Calls of webhooks and of the store end
sooner by deadlines of their own."""
_logged: dict[str, float] = {}

Trouble = Callable[[], str | None]
"""Returns None when all is well, else what is wrong in a few words."""


def report_failure(part: str, error: BaseException, about: str = "") -> None:
    """Count an unexpected failure of one item of a part, and log it at a limited rate."""
    FAILURES.add((part,))
    now = monotonic()
    if now >= _logged.get(part, 0.0):
        _logged[part] = now + _LOG_SECONDS
        log.error(
            "%s failed%s and continues", part, f" on {about}" if about else "", exc_info=error
        )


def is_being_cancelled(error: BaseException) -> bool:
    """Return whether the error is the cancellation of the current task itself. A shared future that
    another caller cancelled raises the same exception in the tasks that wait for it; for these it
    is a failure like any other."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


Context = dict[str, Any]


def count_unhandled(loop: asyncio.AbstractEventLoop, stopping: Callable[[], bool]) -> None:
    """Count failures that reach the event loop, such as those of timers, besides logging them. That
    TLS writes to a connection which has just been closed is the end of that connection only.
    """
    before = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: Context) -> None:
        if _is_end_of_connection(context):
            log.debug("a connection was closed while TLS wrote to it: %s", context["exception"])
            return
        if "exception" in context and not stopping():
            FAILURES.add(("event-loop",))
        if before is None:
            loop.default_exception_handler(context)
        else:
            before(loop, context)

    loop.set_exception_handler(handle)


def _is_end_of_connection(context: Context) -> bool:
    """Return whether uvloop's TLS found its socket closed under it. It tells the connection by
    ``connection_lost`` besides. A failure in our own protocols has a frame of ours.
    """
    error = context.get("exception")
    if "transport" not in context or not isinstance(error, RuntimeError):
        return False
    frame, files = error.__traceback__, list[str]()
    while frame is not None:
        files.append(frame.tb_frame.f_code.co_filename)
        frame = frame.tb_next
    return bool(files) and all(file.startswith("uvloop/") for file in files)


class Pulse:
    """Heartbeat of background work: time of its last progress, and whether it waits for work."""

    def __init__(self) -> None:
        self.last = monotonic()
        self.rests = 0
        """Calls of ``resting`` that have not ended."""

    def has_stalled(self) -> bool:
        return not self.rests and monotonic() - self.last > STALLED_SECONDS


_PULSE: ContextVar[Pulse | None] = ContextVar("instar_background_pulse", default=None)


def begin_pulse(pulse: Pulse) -> None:
    """Set the pulse of the current task or thread; tasks that it starts inherit it."""
    _PULSE.set(pulse)


def in_background() -> bool:
    """Return whether the current task or thread is background work, not a request."""
    return _PULSE.get() is not None


def note_progress() -> None:
    """Record progress of long background work. Has no effect in a request."""
    pulse = _PULSE.get()
    if pulse is not None:
        pulse.last = monotonic()


@contextmanager
def resting() -> Iterator[None]:
    """Mark the block as waiting for work, during which the part does not count as stalled."""
    pulse = _PULSE.get() or Pulse()
    pulse.rests += 1
    try:
        yield
    finally:
        pulse.rests -= 1
        pulse.last = monotonic()


async def rest(seconds: float) -> None:
    """Sleep between two rounds of background work."""
    with resting():
        await asyncio.sleep(seconds)


class _Record:
    """Failures of a part, which determine the next pause and the text on ``/readyz``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pulse = Pulse()
        self.finished = self.stopping = False
        self._failures = 0
        self._last = 0.0

    def pause_after(self, error: BaseException, began: float) -> float:
        """Record the failure of a run that began at ``began``; return the seconds until the next
        run."""
        report_failure(self.name, error)
        self._last = monotonic()
        lasted = self._last - began
        self._failures = 1 if lasted > _RECOVERED_SECONDS else self._failures + 1
        return float(min(_FIRST_PAUSE * 2.0 ** (self._failures - 1), _LONGEST_PAUSE))

    def trouble(self, is_alive: bool) -> str | None:
        if self.finished or self.stopping:
            return None
        if not is_alive:
            return f"{self.name} has stopped"
        failing = self._failures >= _KEEPS_FAILING
        if failing and monotonic() - self._last < _RECOVERED_SECONDS:
            return f"{self.name} keeps failing"
        return f"{self.name} has stalled" if self.pulse.has_stalled() else None


class SupervisedTask:
    """Task that runs a coroutine function and calls it again after each exception, until it
    returns."""

    def __init__(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.record = _Record(name)
        self._run = run
        self.task = asyncio.get_running_loop().create_task(self._keep(), name=name)

    def trouble(self) -> str | None:
        return self.record.trouble(not self.task.done())

    def cancel(self) -> None:
        self.record.stopping = True
        self.task.cancel()

    async def stop(self) -> None:
        self.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _keep(self) -> None:
        begin_pulse(self.record.pulse)
        while True:
            began = monotonic()
            try:
                await self._run()
                break
            except (Exception, asyncio.CancelledError) as error:
                if is_being_cancelled(error):
                    raise
                pause = self.record.pause_after(error, began)
            await rest(pause)
        self.record.finished = True


class SupervisedThread:
    """Thread that runs a function and calls it again after each exception, until it returns."""

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        self.record = _Record(name)
        self._run = run
        self._stopping = threading.Event()
        self.thread = threading.Thread(target=self._keep, name=name, daemon=True)
        self.thread.start()

    def trouble(self) -> str | None:
        return self.record.trouble(self.thread.is_alive())

    def stop(self, seconds: float | None = None) -> None:
        """Wait for its end. The caller must have made ``run`` return."""
        self.record.stopping = True
        self._stopping.set()
        self.thread.join(seconds)

    def _keep(self) -> None:
        begin_pulse(self.record.pulse)
        while True:
            began = monotonic()
            try:
                self._run()
                break
            except Exception as error:
                with resting():
                    if self._stopping.wait(self.record.pause_after(error, began)):
                        return
        self.record.finished = True


class Supervision:
    """The background parts of one server."""

    def __init__(self) -> None:
        self._tasks: dict[SupervisedTask, None] = {}
        self._troubles: dict[str, Trouble] = {}

    def keep(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> SupervisedTask:
        """Run a coroutine function, and run it again after each failure, until it returns or is
        stopped. Names need not be unique."""
        kept = SupervisedTask(name, run)
        self._tasks[kept] = None
        kept.task.add_done_callback(lambda _: self._ended(kept))
        return kept

    def keep_thread(self, name: str, run: Callable[[], None]) -> SupervisedThread:
        kept = SupervisedThread(name, run)
        self.watch(name, kept.trouble)
        return kept

    def watch(self, name: str, trouble: Trouble) -> None:
        """Include a part that is supervised elsewhere; ``trouble`` is called for each
        ``/readyz``."""
        self._troubles[name] = trouble

    def tasks(self) -> list[SupervisedTask]:
        return list(self._tasks)

    def trouble(self) -> str | None:
        """Return the problems of all parts in one line; None when all parts work."""
        found = [kept.trouble() for kept in self._tasks]
        found += [trouble() for trouble in self._troubles.values()]
        return ", ".join(sorted({text for text in found if text})) or None

    def metrics(self) -> tuple[Metric, ...]:
        help = "Whether a part of the background work is in trouble (1) or not (0)."
        return FAILURES, Measured("instar_background_trouble", help, ("part",), self._measured)

    def _measured(self) -> Iterable[tuple[tuple[str], float]]:
        found: dict[str, float] = {}
        for name, trouble in self._all():
            found[name] = max(found.get(name, 0.0), float(trouble() is not None))
        return [((name,), value) for name, value in found.items()]

    def _all(self) -> Iterable[tuple[str, Trouble]]:
        for kept in self._tasks:
            yield kept.record.name, kept.trouble
        yield from self._troubles.items()

    def _ended(self, kept: SupervisedTask) -> None:
        """Remove a task that ended as intended; any other is kept for ``/readyz``."""
        if kept.record.finished or kept.record.stopping:
            self._tasks.pop(kept, None)
