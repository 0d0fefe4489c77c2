"""Compares objects after their write with what was read before it, at every served version.

``rewrite_pass.py`` calls it for each page, and ``verify.py`` through ``rewrite_pass.py`` for the
last listing. Differences that the user did not accept are reported by path, with their cause.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from instar.base.errors import ApiError
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.object_pages import Lister
from instar.tools.migrator.outcomes import Fate, ObjectResult, differs
from instar.tools.migrator.rewrite_checks.rewrite_checker import RewriteChecker
from instar.tools.migrator.undo.journal import UndoJournal


class WrittenObjects:
    """The comparison for one run."""

    def __init__(
        self, lister: Lister, checker: RewriteChecker, undo: UndoJournal | None, concurrency: int
    ) -> None:
        self._lister = lister
        self._checker = checker
        self._undo = undo
        self._concurrency = concurrency

    async def compared(
        self, known: dict[str, ListedObject], outcomes: list[ObjectResult], *, everything: bool
    ) -> list[ObjectResult]:
        """Read rewritten objects again at every version, if the response to the write does not show
        everything: a webhook converts, or changes were accepted.
        """
        results, checker = list(outcomes), self._checker
        everything = everything or checker.asks_server
        accepted = checker.take_accepted()
        queue = iter(
            n
            for n, outcome in enumerate(outcomes)
            if outcome.fate is Fate.REWRITTEN and (everything or outcome.key in accepted)
        )

        async def work() -> None:
            for number in queue:
                results[number] = await self._look_again(known, outcomes[number])

        await asyncio.gather(*(work() for _ in range(self._concurrency)))
        return results

    async def _look_again(
        self, known: dict[str, ListedObject], outcome: ObjectResult
    ) -> ObjectResult:
        before = outcome.reading or known[outcome.key]
        try:
            now = await self._lister.read_one(outcome.key)
        except ApiError:
            return outcome
        if now.revision != outcome.revision:
            return outcome
        wrong = self.difference(before, now)
        if wrong is not None:
            return wrong
        if not before.digests.keys() <= now.digests.keys():
            # A version could not be read now; the verification at the end compares it, too.
            return outcome
        # What the user accepted is what the last look compares with.
        return replace(outcome, reading=now)

    def refined(self, found: ListedObject, wrong: ObjectResult) -> ObjectResult | None:
        """Return the differences to the journalled reading, by path; None if the user accepted all
        of them. ``wrong`` comes from digests, which name only parts.
        """
        entry = None if self._undo is None else self._undo.entry(found.key)
        if entry is None:
            return wrong
        return self.difference(replace(found, readings=entry.readings), found)

    def difference(self, before: ListedObject, now: ListedObject) -> ObjectResult | None:
        """Return the differences to an earlier reading that the user did not accept."""
        checker = self._checker
        for version, shown in now.readings.items():
            changes = checker.seen_changes(before, version, shown)
            if changes:
                what = [str(change.difference) for change in changes[:3]]
                why = checker.explained(changes)
                return differs(now.key, now.revision, version, what, why)
        return None
