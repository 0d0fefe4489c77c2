"""The rewriting pass: pages in, outcomes out, a bounded number of objects in hand at any time.

While one page is rewritten, the next is already being listed. The journal learns of a page before
its first write and after its last, so a kill costs at most one page of repeated no-ops. What the
server or a webhook had no answer for is tried once more when everything else is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from instar.base.errors import ApiError, Expired, NotFound
from instar.base.fast_dataclass import dataclass
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.object_pages import Lister, ObjectPage, Unlistable
from instar.tools.migrator.object_writer import NoopWriter
from instar.tools.migrator.outcomes import Fate, ObjectResult, failed
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.progress_file import ProgressFile
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.verify import difference

_TRIAL = 20
"""Objects that are rewritten and looked at again at every version before the rest follows."""
_OUTAGE_AFTER = 3
"""Batches in a row, each as large as the concurrency, in which nothing worked but might later."""
_LAST_PASSES = (1.0, 4.0, 10.0)
"""Seconds to wait before each further look at what was put off."""
_BATCH = 200


class Stopped(Exception):
    """The run ended before everything was tried; ``str()`` says why. It can be resumed."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What the rewriting pass found out beyond the journal."""

    unreadable: dict[str, ApiError]
    """Objects that cannot be read at some served version (at most a hundred are kept)."""
    restored: int = 0
    """Objects whose owners the server had dropped, and was given back."""


class RewritePass:
    def __init__(
        self,
        lister: Lister,
        writer: NoopWriter,
        journal: ProgressFile,
        progress: Progress,
        patience: RetryPolicy,
        *,
        concurrency: int,
        keep_going: bool,
        try_first: bool,
    ) -> None:
        self._lister = lister
        self._writer = writer
        self._journal = journal
        self._progress = progress
        self._patience = patience
        self._concurrency = concurrency
        self._keep_going = keep_going
        self._try_first = try_first
        self._failures_in_a_row = 0
        self._unreadable: dict[str, ApiError] = {}
        self._restored = 0

    async def run(self) -> Pass:
        """Raises ``Stopped`` when going on makes no sense now."""
        if self._journal.listed and not self._journal.unfinished:
            return Pass({})
        if self._journal.listed:
            self._journal.forget_position()
        first = True
        async for page in self._pages(self._journal.token):
            if first and page.remaining is not None:
                self._progress.begin("rewriting", len(page.found) + page.remaining)
            await self._page(page)
            if first and self._try_first:
                await self._look_again(page)
            first = False
        await self._last_passes()
        return Pass(self._unreadable, self._restored)

    async def _look_again(self, page: ObjectPage) -> None:
        """A conversion that loses data shows here, before it has met every object."""
        for found in page.found:
            line = self._journal.line(found.key)
            if line is None or line.fate is not Fate.REWRITTEN:
                continue
            try:
                now = await self._lister.again(found.key)
            except ApiError:
                continue
            wrong = difference(line, now, found)
            if wrong is not None:
                self._journal.correct([wrong])
                self._judge(wrong)

    async def _pages(self, token: str) -> AsyncIterator[ObjectPage]:
        """Each page, the one after it already on its way."""
        trial = _TRIAL if self._try_first else 0
        upcoming = asyncio.ensure_future(self._listed(token, trial))
        try:
            while True:
                page = await upcoming
                if page.token:
                    upcoming = asyncio.ensure_future(self._listed(page.token))
                yield page
                if not page.token:
                    return
        finally:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)

    async def _listed(self, token: str, limit: int = 0) -> ObjectPage:
        try:
            return await self._lister.page(token, limit, keep=bool(limit))
        except Expired:
            self._progress.note("the position in the list has expired; listing from the start")
            self._journal.forget_position()
            return await self._lister.page("")
        except Unlistable as error:
            raise Stopped(f"the objects cannot be listed any further: {error}") from error
        except ApiError as error:
            raise Stopped(f"the objects cannot be listed: {error.message}") from error

    async def _page(self, page: ObjectPage) -> None:
        for key, error in page.unreadable.items():
            if len(self._unreadable) < 100:
                self._unreadable[key] = error
        todo = self._journal.take(page.found)
        self._progress.advance(len(page.found) - len(todo))
        outcomes = await self._written(todo)
        self._journal.finish_page(outcomes, page.token)

    async def _written(self, todo: list[ListedObject]) -> list[ObjectResult]:
        """Everything in hand, some at a time; what is known is noted even when that stops."""
        outcomes: list[ObjectResult] = []
        queue = iter(todo)
        stopped: Stopped | None = None
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._concurrency, len(todo))):
                    workers.create_task(self._work(queue, outcomes))
        except* Stopped as group:
            stopped = next(error for error in group.exceptions if isinstance(error, Stopped))
        finally:
            if stopped is not None or len(outcomes) < len(todo):
                self._journal.correct(outcomes)
        if stopped is not None:
            raise stopped
        return outcomes

    async def _work(self, queue: Iterator[ListedObject], outcomes: list[ObjectResult]) -> None:
        for found in queue:
            outcome = await self._writer.rewrite(found)
            outcomes.append(outcome)
            self._progress.advance(0 if outcome.fate is Fate.DEFERRED else 1)
            self._restored += outcome.restored
            self._judge(outcome)

    def _judge(self, outcome: ObjectResult) -> None:
        if outcome.fate is Fate.DIFFERS and not self._keep_going:
            raise Stopped(
                f"{outcome.key}: {outcome.message}; nothing more is rewritten (--keep-going does)"
            )
        self._failures_in_a_row = self._failures_in_a_row + 1 if outcome.outage else 0
        if self._failures_in_a_row >= _OUTAGE_AFTER * self._concurrency:
            raise Stopped(f"nothing works any more: {outcome.message}")

    async def _last_passes(self) -> None:
        for delay in _LAST_PASSES:
            keys = self._journal.deferred()
            if not keys:
                return
            await asyncio.sleep(min(delay, self._patience.longest_delay))
            for start in range(0, len(keys), _BATCH):
                await self._once_more(keys[start : start + _BATCH])
        self._journal.give_up()

    async def _once_more(self, keys: list[str]) -> None:
        found: list[ListedObject] = []
        unread: list[ObjectResult] = []
        for key in keys:
            try:
                found.append(await self._lister.again(key))
            except NotFound:
                unread.append(ObjectResult(key, Fate.GONE))
            except ApiError as error:
                unread.append(failed(key, error))
        self._journal.correct(unread)
        self._journal.correct(await self._written(self._journal.take(found)))
