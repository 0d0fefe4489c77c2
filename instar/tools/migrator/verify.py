"""After the rewriting: proof that every object is stored anew, and says what it said before.

One more complete list, taken after the last write. An object is accounted for when its present
state is the one our own write left, or when somebody wrote it after the storage version was known
to be in effect everywhere. That somebody else changed it proves nothing by itself. What is not
accounted for is written once more, here and now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field

from instar.base.errors import ApiError, Expired, NotFound
from instar.base.fast_dataclass import dataclass
from instar.tools.migrator.content_diff import changed_parts, changes
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.object_pages import Lister, ObjectPage, Unlistable
from instar.tools.migrator.outcomes import WRITTEN, Fate, ObjectResult, differs
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.progress_file import ProgressFile, ProgressLine

Rewrite = Callable[[ListedObject], Awaitable[ObjectResult]]
_NAMED = 100


@dataclass
class Verification:
    compared: bool = True
    """Contents too, not only whose write each object shows."""
    same: int = 0
    """Objects whose content is the same at every version compared."""
    differing: int = 0
    changed_since: int = 0
    """Written by somebody else after us, at the storage version."""
    new: int = 0
    """Not there when the run listed them, and written at the storage version."""
    late: int = 0
    """Nothing accounted for them at first; rewritten during this look."""
    unproven: int = 0
    unproven_keys: list[str] = field(default_factory=list)
    """The first of those that nothing accounts for."""
    incomplete: str = ""
    """Why not everything was looked at."""


class Proof:
    def __init__(
        self, lister: Lister, journal: ProgressFile, rewrite: Rewrite, *, compare: bool = True
    ) -> None:
        self._lister = lister
        self._journal = journal
        self._rewrite = rewrite
        self._compare = compare
        self._result = Verification(compared=compare)

    async def look(self, progress: Progress) -> Verification:
        """Every object once more. Never raises: what cannot be seen leaves it incomplete."""
        progress.begin("verifying", sum(self._journal.counts().values()))
        number = self._journal.next_look()
        token = ""
        while True:
            try:
                page = await self._lister.page(token)
            except (ApiError, Unlistable, Expired) as error:
                self._result.incomplete = f"the objects could not be listed again: {error}"
                return self._result
            await self._page(page, number)
            progress.advance(len(page.found))
            token = page.token
            if not token:
                break
        await self._confirm_gone(number)
        return self._result

    async def _page(self, page: ObjectPage, number: int) -> None:
        wrong: list[ObjectResult] = []
        for found in page.found:
            line = self._journal.line(found.key)
            outcome = self._accounted(found, line)
            if outcome is None:
                await self._late(found)
            elif outcome.fate is Fate.DIFFERS or line is None or line.fate is not outcome.fate:
                wrong.append(outcome)
        self._journal.correct(wrong)
        self._journal.mark_seen((found.key for found in page.found), number)

    def _accounted(self, found: ListedObject, line: ProgressLine | None) -> ObjectResult | None:
        """What is known of the object now; None when nothing accounts for it."""
        result = self._result
        if line is not None and line.fate in WRITTEN and line.after == found.revision:
            wrong = difference(line, found) if self._compare else None
            if wrong is None:
                result.same += 1
                return ObjectResult(found.key, line.fate, line.after)
            result.differing += 1
            return wrong
        if line is not None and line.fate is Fate.DIFFERS:
            result.differing += 1
            return ObjectResult(found.key, line.fate, line.after, line.reason, line.message)
        if is_later(found.revision, self._journal.effective):
            if line is None:
                result.new += 1
            else:
                result.changed_since += 1
            return ObjectResult(found.key, Fate.OVERTAKEN, found.revision)
        if line is not None and line.fate is Fate.FAILED:
            return ObjectResult(found.key, line.fate, line.after, line.reason, line.message)
        return None

    async def _late(self, found: ListedObject) -> None:
        """Nobody can say what its bytes are: write it, and look what that did."""
        (item,) = self._journal.take([found]) or [found]
        outcome = await self._rewrite(item)
        self._journal.correct([outcome])
        if outcome.fate in WRITTEN:
            self._result.late += 1
            line = self._journal.line(found.key)
            try:
                now = await self._lister.again(found.key)
            except ApiError:
                return
            wrong = difference(line, now) if self._compare and line is not None else None
            if wrong is not None:
                self._result.differing += 1
                self._journal.correct([wrong])
        elif outcome.fate is Fate.OVERTAKEN and is_later(outcome.revision, self._journal.effective):
            self._result.changed_since += 1
        elif outcome.fate is not Fate.GONE and outcome.fate is not Fate.DIFFERS:
            self._result.unproven += 1
            self._result.unproven_keys = [*self._result.unproven_keys, found.key][:_NAMED]

    async def _confirm_gone(self, number: int) -> None:
        """Trouble with an object ends with the object."""
        for key in self._journal.unseen(number):
            try:
                await self._lister.again(key)
            except NotFound:
                self._journal.correct([ObjectResult(key, Fate.GONE)])
            except ApiError:
                continue


def is_later(revision: str, effective: str) -> bool:
    """Revisions that are no numbers cannot be compared, so they prove nothing."""
    return revision.isdecimal() and effective.isdecimal() and int(revision) > int(effective)


def difference(
    line: ProgressLine, found: ListedObject, before: ListedObject | None = None
) -> ObjectResult | None:
    """How an object differs from its first reading, if nobody else wrote it since."""
    if line.after != found.revision:
        return None
    wrong = sorted(
        version
        for version, digest in line.digests.items()
        if version in found.digests and found.digests[version] != digest
    )
    if not wrong:
        return None
    what: list[str] = []
    for version in wrong:
        old = None if before is None else before.readings.get(version)
        new = found.readings.get(version)
        if old is not None and new is not None:
            what += changes(old, new)
        else:
            what += changed_parts(line.digests[version], found.digests[version])
    return differs(found.key, found.revision, ", ".join(wrong), dict.fromkeys(what))
