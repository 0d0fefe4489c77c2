"""Metrics of all processes behind one port, merged: /metrics is the same in each of them.

``instar serve --workers`` enters ``merge_worker_metrics`` in the first process and
``share_worker_metrics`` in each worker. The first process asks the workers over a socket for each
scrape and every few seconds; it keeps the last counts of a worker that was killed, so that no
counter decreases. Metrics of every name and type are merged.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from pathlib import Path

import orjson

from instar.base.errors import ServiceUnavailable
from instar.base.metrics import Family, merge_families, without_gauges
from instar.base.supervision import Supervision, rest
from instar.server.endpoints.metrics import Metrics
from instar.wire.storage.workers.frames import FrameReader, Head, frame

SOCKET = "numbers.sock"
_PATIENCE = 1.0
"""Seconds to wait for the counts of a worker; after that its last ones are used."""
_LONGER = 3.0
"""Seconds to wait for the first process, which may itself wait for another worker."""
_EVERY = 5.0
_SILENT_SECONDS = 30.0
Numbers = Callable[[], Awaitable[list[Family]]]


@contextlib.asynccontextmanager
async def merge_worker_metrics(
    metrics: Metrics, folder: Path, supervision: Supervision
) -> AsyncIterator[None]:
    """In the first process: its /metrics shows all processes until the end of the block."""
    gathering = MetricsGatherer(metrics)
    loop = asyncio.get_running_loop()
    server = await loop.create_unix_server(gathering.meet, str(folder / SOCKET))
    listening = supervision.keep("numbers-of-workers", gathering.listen)
    supervision.watch("workers", gathering.trouble)
    metrics.of_all = gathering.families
    try:
        yield
    finally:
        metrics.of_all = None
        server.close()
        await listening.stop()
        gathering.close()


@contextlib.asynccontextmanager
async def share_worker_metrics(metrics: Metrics, folder: Path) -> AsyncIterator[None]:
    """In a worker: send its metrics to the first process. Raises ``OSError`` where the first
    process does not listen."""

    async def families_of_all() -> list[Family]:
        if not await line.ask(_LONGER):
            text = "the process that merges the metrics of all does not answer"
            raise ServiceUnavailable(text, retry_after=1)
        return line.heard

    line = _MetricsConnection(metrics.counted, lambda: None)
    loop = asyncio.get_running_loop()
    await loop.create_unix_connection(lambda: line.frames, str(folder / SOCKET))
    await line.ask(_LONGER)  # from the answer on this process is included
    metrics.of_all = families_of_all
    try:
        yield
    finally:
        metrics.of_all = None
        line.send_families(metrics.own())
        line.frames.finish()


class MetricsGatherer:
    """The first process: asks all workers for metrics and merges them."""

    def __init__(self, metrics: Metrics) -> None:
        self._own = metrics.counted
        self._lines: set[_MetricsConnection] = set()
        self._gone: list[Family] = []
        """Last counts of workers that have ended."""

    def meet(self) -> FrameReader:
        def part() -> None:
            self._lines.discard(line)
            self._gone = merge_families([self._gone, without_gauges(line.heard)])

        line = _MetricsConnection(self.families, part)
        self._lines.add(line)
        return line.frames

    async def families(self) -> list[Family]:
        await self._ask_all()
        return merge_families(
            [await self._own(), self._gone, *(line.heard for line in self._lines)]
        )

    async def listen(self) -> None:
        while True:
            await rest(_EVERY)
            await self._ask_all()

    def trouble(self) -> str | None:
        """Return a message if a worker does not respond, because its clients wait for it."""
        silent = any(line.silent_seconds() > _SILENT_SECONDS for line in self._lines)
        return "a worker does not answer" if silent else None

    def close(self) -> None:
        for line in tuple(self._lines):
            line.frames.close()

    async def _ask_all(self) -> None:
        await asyncio.gather(*(line.ask(_PATIENCE) for line in self._lines))


class _MetricsConnection:
    """The connection between the first process and a worker; either end may ask for metrics."""

    def __init__(self, numbers: Numbers, parted: Callable[[], None]) -> None:
        self.heard: list[Family] = []
        """The last metrics received from the other end."""
        self.frames = FrameReader(self._received, self._lost)
        self._numbers = numbers
        self._parted = parted
        self._questions = count(1)
        self._asked: dict[int, asyncio.Future[bool]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._heard_at = asyncio.get_running_loop().time()

    def silent_seconds(self) -> float:
        """Return how long ago the other end answered, or connected."""
        return asyncio.get_running_loop().time() - self._heard_at

    async def ask(self, within: float) -> bool:
        """Ask for metrics. Returns whether ``heard`` is the answer."""
        if self.frames.transport is None:
            return False
        question = next(self._questions)
        answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked[question] = answered
        self.frames.send(frame([question, "ask"]))
        try:
            await asyncio.wait([answered], timeout=within)  # works outside a task, unlike wait_for
            return answered.done() and answered.result()
        finally:
            del self._asked[question]

    def send_families(self, families: list[Family], question: int = 0) -> None:
        body = orjson.dumps([family.plain() for family in families])
        self.frames.send(frame([question, "told"], (body,)))

    def _received(self, head: Head, body: bytes) -> None:
        question, what = head
        if what == "ask":
            task = asyncio.get_running_loop().create_task(self._answer(question))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
            return
        self._heard_at = asyncio.get_running_loop().time()
        self.heard = [Family.of_plain(family) for family in orjson.loads(body)]
        self._settle(question, True)

    async def _answer(self, question: int) -> None:
        self.send_families(await self._numbers(), question)

    def _settle(self, question: int, answered: bool) -> None:
        future = self._asked.get(question)
        if future is not None and not future.done():
            future.set_result(answered)

    def _lost(self, error: Exception | None) -> None:
        for question in tuple(self._asked):
            self._settle(question, False)
        self._parted()
