"""Supervises background tasks and threads: restarts them when they fail, and counts failures.

Every part of a server that works without a request runs under a ``Supervision``: a task or thread
that ends by an exception is logged, counted and started again after a pause, and ``/readyz`` shows
one that has stopped or keeps failing. Work that comes in items catches the exceptions of an item
itself and calls ``report_failure``.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable
from time import monotonic
from typing import Any

from instar.base.metrics import Counter, Measured, Metric

log = logging.getLogger(__name__)
FAILURES = Counter(
    "instar_background_failures_total",
    "Unexpected failures of background work, by part. The part goes on.",
    ("part",),
)
_LOG_SECONDS = 10.0
"""Between two log lines about one part; each failure is counted."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
_KEEPS_FAILING = 3
"""Failures in a row after which ``/readyz`` shows the part."""
_RECOVERED_SECONDS = 60.0
"""After this time without a failure a part counts as recovered."""
_logged: dict[str, float] = {}

Trouble = Callable[[], str | None]
"""Returns None when all is well, else what is wrong in a few words."""


def report_failure(part: str, error: BaseException, about: str = "") -> None:
    """Count an unexpected failure of one item of a part, and log it now and then."""
    FAILURES.add((part,))
    now = monotonic()
    if now >= _logged.get(part, 0.0):
        _logged[part] = now + _LOG_SECONDS
        log.error("%s failed%s and goes on", part, f" on {about}" if about else "", exc_info=error)


class _Record:
    """The failures of a part: they decide the next pause and what ``/readyz`` shows."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.finished = self.stopping = False
        self._failures = 0
        self._last = 0.0

    def pause_after(self, error: BaseException, began: float) -> float:
        """Note the failure of a run that began at ``began``. Return the seconds until the next."""
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
        return None


class KeptTask:
    """A coroutine function that is called again when it fails, until it returns."""

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
        while True:
            began = monotonic()
            try:
                await self._run()
                break
            except Exception as error:
                pause = self.record.pause_after(error, began)
            await asyncio.sleep(pause)
        self.record.finished = True


class KeptThread:
    """The same for a function that runs in a thread of its own."""

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
        while True:
            began = monotonic()
            try:
                self._run()
                break
            except Exception as error:
                if self._stopping.wait(self.record.pause_after(error, began)):
                    return
        self.record.finished = True


class Supervision:
    """The background parts of one server."""

    def __init__(self) -> None:
        self._tasks: dict[KeptTask, None] = {}
        self._troubles: dict[str, Trouble] = {}

    def keep(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> KeptTask:
        """Run a coroutine function, again after each failure, until it returns or is stopped.
        Several may have one name."""
        kept = KeptTask(name, run)
        self._tasks[kept] = None
        kept.task.add_done_callback(lambda _: self._ended(kept))
        return kept

    def keep_thread(self, name: str, run: Callable[[], None]) -> KeptThread:
        kept = KeptThread(name, run)
        self.watch(name, kept.trouble)
        return kept

    def watch(self, name: str, trouble: Trouble) -> None:
        """Include a part that is not kept here: ``trouble`` is called for each ``/readyz``."""
        self._troubles[name] = trouble

    def tasks(self) -> list[KeptTask]:
        return list(self._tasks)

    def trouble(self) -> str | None:
        """Return what is wrong with all parts, in one line; None when all of them work."""
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

    def _ended(self, kept: KeptTask) -> None:
        """Forget a task that ended as intended; any other stays, for ``/readyz`` to show."""
        if kept.record.finished or kept.record.stopping:
            self._tasks.pop(kept, None)
