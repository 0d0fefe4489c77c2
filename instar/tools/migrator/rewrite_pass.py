"""The rewriting pass of a migration: lists page by page, and takes each page through five steps.

Called by ``migration.py``. The rewrite of each page is checked
(``rewrite_checks/rewrite_checker.py``), and the page is recorded in the undo journal, written
(``object_writer.py``), read again where a webhook converts, and noted in the progress file. An
object that a write changed is restored at once and the run stops. A bounded number of objects is in
memory at any time: the page that is written and the next one, which is listed meanwhile.

Each page is recorded in the progress file before its first write and after its last write, so a
kill costs at most one page of repeated no-op writes. Objects whose requests failed temporarily are
tried again after all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import field, replace

from instar.base.errors import ApiError, Expired, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.plurals import counted
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.object_pages import Lister, ObjectPage, Unlistable
from instar.tools.migrator.object_writer import StorageVersionRewriter
from instar.tools.migrator.outcomes import CONTENT_CHANGED, Fate, ObjectResult, failed
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.progress_file import ProgressFile
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.migrator.rewrite_checks.rewrite_checker import RewriteChecker
from instar.tools.migrator.rewrite_checks.written_objects import WrittenObjects
from instar.tools.migrator.undo.journal import UndoJournal, UndoJournalError
from instar.tools.migrator.undo.put_back import ObjectRestorer, UndoReport

_TRIAL = 20
"""Objects on the first page."""
_OUTAGE_AFTER = 3
"""Batches in a row, each as large as the concurrency, in which nothing worked but might later."""
_LAST_PASSES = (1.0, 4.0, 10.0)
"""Seconds to wait before each further look at what was put off."""
_BATCH = 200
_LEFT = (Fate.REWRITTEN, Fate.DIFFERS)
"""Outcomes of objects that the run has written."""
_UNREADABLE = 100


class Stopped(Exception):
    """The run ended before everything was tried; ``str()`` says why. It can be resumed."""


@dataclass
class Pass:
    """Results of the rewriting pass that are not in the progress file."""

    unreadable: dict[str, ApiError] = field(default_factory=dict)
    """Objects that cannot be read at some served version (at most a hundred are kept)."""
    restored: int = 0
    """Objects whose owners the server had dropped and were written again."""
    put_back: UndoReport = field(default_factory=UndoReport)
    """Objects that a rewrite changed, and what became of them."""


@dataclass(frozen=True, slots=True)
class Safeguards:
    """Protection of objects during a rewrite. A rehearsal works on a copy and uses none of it."""

    checker: RewriteChecker
    prove: bool = True
    undo: UndoJournal | None = None
    restorer: ObjectRestorer | None = None
    compare: bool = True
    """Read objects again after their write and compare contents."""
    why_changed: Callable[[], Awaitable[str]] | None = None
    """Asked before each page is written: why a proof against the CRD holds no longer."""


class RewritePass:
    """One pass over the objects of a CRD: prove, journal, write, compare."""

    def __init__(
        self,
        lister: Lister,
        writer: StorageVersionRewriter,
        progress_file: ProgressFile,
        progress: Progress,
        patience: RetryPolicy,
        safeguards: Safeguards,
        *,
        concurrency: int,
        keep_going: bool,
        try_first: bool,
    ) -> None:
        self._lister = lister
        self._writer = writer
        self._progress_file = progress_file
        self._progress = progress
        self._patience = patience
        self._safe = safeguards
        self._concurrency = concurrency
        self._keep_going = keep_going
        self.results = WrittenObjects(lister, safeguards.checker, safeguards.undo, concurrency)
        self._try_first = try_first
        self._failures_in_a_row = 0
        self._halted = False
        """Whether a write changed an object, so that no further one is written."""
        self._trouble: Stopped | None = None
        """Why the run must end after the present page."""
        self.result = Pass()

    async def run(self) -> None:
        """Run the pass. Raises ``Stopped`` if it cannot continue now."""
        if self._progress_file.listed and not self._progress_file.unfinished:
            return
        if self._progress_file.listed:
            self._progress_file.forget_position()
        first = True
        async for page in self._pages(self._progress_file.token):
            if first and page.remaining is not None:
                self._progress.begin("rewriting", len(page.found) + page.remaining)
            await self._page(page, trial=first and self._try_first)
            first = False
        await self._last_passes()

    async def rewrite(self, found: ListedObject) -> ObjectResult:
        """Run all steps for one object. The caller records the outcome."""
        (outcome,) = await self._rewritten([found])
        return outcome

    async def _pages(self, token: str) -> AsyncIterator[ObjectPage]:
        """Yield each page while the next one is being listed."""
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
            return await self._lister.page(token, limit)
        except Expired:
            self._progress.note("the position in the list has expired; listing from the start")
            self._progress_file.forget_position()
            return await self._lister.page("")
        except Unlistable as error:
            raise Stopped(f"the objects cannot be listed any further: {error}") from error
        except ApiError as error:
            raise Stopped(f"the objects cannot be listed: {error.message}") from error

    async def _page(self, page: ObjectPage, *, trial: bool) -> None:
        for key, error in page.unreadable.items():
            if len(self.result.unreadable) < _UNREADABLE:
                self.result.unreadable[key] = error
        todo = self._progress_file.take(page.found)
        self._progress.advance(len(page.found) - len(todo))
        outcomes = await self._rewritten(todo, trial=trial)
        self._progress_file.finish_page([*outcomes, *page.undecodable], page.token)

    async def _rewritten(
        self, todo: list[ListedObject], *, trial: bool = False
    ) -> list[ObjectResult]:
        """Prove, record, write and check some objects."""
        refusals = await self._refusals(todo)
        unsafe = {outcome.key for outcome in refusals}
        todo = [found for found in todo if found.key not in unsafe]
        changed = self._recorded(todo)
        unasked = await self._unasked(todo, refusals)
        if unasked:
            return [*refusals, *unasked]
        outcomes, stopped = await self._written([f for f in todo if f.key not in changed])
        outcomes += changed.values()
        outcomes = await self._checked(todo, outcomes, trial=trial)
        wrong = [outcome for outcome in outcomes if outcome.fate is Fate.DIFFERS]
        stopped = stopped or self._trouble
        if wrong and stopped is None and not self._keep_going:
            stopped = Stopped(
                f"{wrong[0].key}: {wrong[0].message}; nothing more is rewritten (--keep-going does)"
            )
        if stopped is not None:
            self._progress_file.correct([*refusals, *outcomes])
            raise stopped
        return [*refusals, *outcomes]

    async def _refusals(self, todo: list[ListedObject]) -> list[ObjectResult]:
        """Return the objects that must not be written. Raises ``Stopped`` before anything of the
        page is written when a rewrite would change one."""
        if not self._safe.prove:
            return []
        refusals = await self._safe.checker.refusals(todo)
        try:
            for outcome in refusals:
                self._judge_outage(outcome)
        except Stopped:
            self._progress_file.correct(refusals)
            raise
        self._progress.advance(sum(outcome.fate is not Fate.DEFERRED for outcome in refusals))
        harmed = [outcome for outcome in refusals if outcome.fate is Fate.REFUSED]
        if harmed and not self._keep_going:
            self._progress_file.correct(refusals)
            raise Stopped(
                f"{counted(len(harmed), 'object')} of the next {len(todo)} would change: "
                f"{harmed[0].key}: {harmed[0].message}; none of them was written (--keep-going "
                "writes the others)"
            )
        return refusals

    async def _unasked(
        self, todo: Sequence[ListedObject], refusals: list[ObjectResult]
    ) -> list[ObjectResult]:
        """Return the outcomes of a page if the CRD cannot be read. Raises ``Stopped`` before a page
        is written if the CRD has changed since the page was read and proven.
        """
        if self._safe.why_changed is None or not todo:
            return []
        try:
            why = await self._safe.why_changed()
        except ApiError as error:
            outcomes = [failed(found.key, error) for found in todo]
            for outcome in outcomes:
                self._judge_outage(outcome)
            return outcomes
        if why:
            self._progress_file.correct(refusals)
            raise Stopped(f"{why}; nothing more is rewritten; run again")
        return []

    def _recorded(self, todo: Sequence[ListedObject]) -> dict[str, ObjectResult]:
        """Record objects in the undo journal. Return those that an earlier, killed run changed."""
        undo = self._safe.undo
        if undo is None:
            return {}
        try:
            undo.record(todo)
        except UndoJournalError as error:
            raise Stopped(str(error)) from error
        return {found.key: wrong for found in todo if (wrong := self._killed_write(undo, found))}

    def _killed_write(self, undo: UndoJournal, found: ListedObject) -> ObjectResult | None:
        """Return the differences of an object that an earlier, killed run wrote without recording
        it; the journal then has another revision of the object.
        """
        entry = undo.entry(found.key)
        if entry is None or entry.revision == found.revision or entry.after:
            return None
        before = replace(found, readings=entry.readings)
        return self.results.difference(before, found)

    async def _guarded(self, found: ListedObject) -> ObjectResult | None:
        """Prove and record again an object that another client has written meanwhile."""
        if self._safe.prove:
            refusal = await self._safe.checker.refusal(found)
            if refusal is not None:
                return refusal
        if self._safe.undo is not None:
            try:
                self._safe.undo.record([found])
            except UndoJournalError as error:
                raise Stopped(str(error)) from error
        return None

    async def _written(self, todo: list[ListedObject]) -> tuple[list[ObjectResult], Stopped | None]:
        """Write all objects, several at a time. Running writes are finished before a stop."""
        outcomes: list[ObjectResult] = []
        queue = iter(todo)
        stops: list[Stopped] = []
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._concurrency, len(todo))):
                    workers.create_task(self._work(queue, outcomes, stops))
        finally:
            if len(outcomes) < len(todo):
                self._progress_file.correct(outcomes)
        return outcomes, stops[0] if stops else None

    async def _work(
        self, queue: Iterator[ListedObject], outcomes: list[ObjectResult], stops: list[Stopped]
    ) -> None:
        for found in queue:
            try:
                outcome = await self._writer.rewrite(found, self._guarded)
                outcomes.append(outcome)
                self._progress.advance(0 if outcome.fate is Fate.DEFERRED else 1)
                self.result.restored += outcome.restored
                self._judge_outage(outcome)
            except Stopped as stopped:
                stops.append(stopped)
            if not stops and outcomes[-1].fate is Fate.DIFFERS:
                stops += await self._why_stop()
                self._halted = self._halted or not self._keep_going
            if stops or self._halted:
                return

    async def _why_stop(self) -> list[Stopped]:
        """Return why the run must stop after a write changed an object, even with keep-going: the
        CRD is not the one that the proof used, so the next write would do the same.
        """
        if self._safe.why_changed is None:
            return []
        try:
            why = await self._safe.why_changed()
        except ApiError:
            return []
        return [Stopped(f"{why}; nothing more is rewritten; run again")] if why else []

    def _judge_outage(self, outcome: ObjectResult) -> None:
        self._failures_in_a_row = self._failures_in_a_row + 1 if outcome.outage else 0
        if self._failures_in_a_row >= _OUTAGE_AFTER * self._concurrency:
            raise Stopped(f"nothing works any more: {outcome.message}")

    async def _checked(
        self, todo: Sequence[ListedObject], outcomes: list[ObjectResult], *, trial: bool
    ) -> list[ObjectResult]:
        """Compare the written objects with their readings, and restore those that changed."""
        undo, known = self._safe.undo, {found.key: found for found in todo}
        if undo is not None:
            try:
                undo.note_written({o.key: o.revision for o in outcomes if o.fate in _LEFT})
                undo.drop(o.key for o in outcomes if o.fate in (Fate.CURRENT, Fate.GONE))
            except UndoJournalError as error:
                # The journal has what was there; the results of this page are compared now.
                self._trouble = Stopped(str(error))
        if self._safe.compare:
            outcomes = await self.results.compared(known, outcomes, everything=trial)
        return await self.put_back(outcomes)

    async def put_back(self, outcomes: list[ObjectResult]) -> list[ObjectResult]:
        """Restore the objects that a write changed, and say so in their messages."""
        changed = [
            o.key for o in outcomes if o.fate is Fate.DIFFERS and o.reason == CONTENT_CHANGED
        ]
        if not changed or self._safe.restorer is None:
            return outcomes
        report = await self._safe.restorer.put_these_back(changed)
        told = {item.key: item for item in report.objects}
        for item in report.objects:
            self.result.put_back.add(item)
        return [
            replace(o, message=f"{o.message}; {_fate_of(told[o.key].state, told[o.key].text)}")
            if o.key in told
            else o
            for o in outcomes
        ]

    async def _last_passes(self) -> None:
        for delay in _LAST_PASSES:
            keys = self._progress_file.deferred()
            if not keys:
                return
            await asyncio.sleep(min(delay, self._patience.longest_delay))
            for start in range(0, len(keys), _BATCH):
                await self._once_more(keys[start : start + _BATCH])
        self._progress_file.give_up()

    async def _once_more(self, keys: list[str]) -> None:
        found: list[ListedObject] = []
        unread: list[ObjectResult] = []
        for key in keys:
            try:
                found.append(await self._lister.read_one(key))
            except NotFound:
                unread.append(ObjectResult(key, Fate.GONE))
            except ApiError as error:
                unread.append(failed(key, error))
        self._progress_file.correct(unread)
        self._progress_file.correct(await self._rewritten(self._progress_file.take(found)))


def _fate_of(state: str, text: str) -> str:
    return "it was put back" if state == "put back" else f"it is {state}: {text}"
