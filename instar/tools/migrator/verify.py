"""Verification after the rewriting pass: lists every object again and checks that it is stored at
the storage version.

Called by ``migration.py``. An object counts as verified (accounted for) when its state is the one
that this run's write produced, or when another client wrote it after the storage version was in
effect on every API server. A change that another client made before that time does not prove that
the object is stored at the storage version. An object that is not accounted for is written again.
An object that lists show but requests by name do not find was not deleted: the report lists it as
quarantined (not migrated, to be handled by the user).
"""

from __future__ import annotations

from dataclasses import field

from instar.base.errors import ApiError, Expired, NotFound
from instar.base.fast_dataclass import dataclass
from instar.tools.migrator.content_diff import changed_parts
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.object_pages import Lister, ObjectPage, Unlistable
from instar.tools.migrator.outcomes import (
    TROUBLED,
    WRITTEN,
    Fate,
    ObjectResult,
    differs,
    unreachable,
)
from instar.tools.migrator.progress import Progress
from instar.tools.migrator.progress_file import ProgressFile, ProgressLine
from instar.tools.migrator.rewrite_pass import RewritePass

_NAMED = 100


@dataclass
class Verification:
    """Result of comparing objects after a migration with their readings before it."""

    compared: bool = True
    """Whether contents were compared, and not only resourceVersions."""
    same: int = 0
    """Objects whose content is the same at every version compared."""
    differing: int = 0
    changed_since: int = 0
    """Written by another client after this run, at the storage version."""
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
    """Accounts for each object after a migration, by a last complete list."""

    def __init__(
        self,
        lister: Lister,
        progress_file: ProgressFile,
        rewriting: RewritePass,
        *,
        compare: bool = True,
    ) -> None:
        self._lister = lister
        self._progress_file = progress_file
        self._rewriting = rewriting
        self._compare = compare
        self._result = Verification(compared=compare)
        self._unreached: dict[str, str] = {}
        """ResourceVersions, by key, of listed objects that requests by name did not reach."""

    async def verify_objects(self, progress: Progress) -> Verification:
        """List every object again. Objects that cannot be listed leave the result incomplete."""
        progress.begin("verifying", sum(self._progress_file.counts().values()))
        number = self._progress_file.next_look()
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
        if self._unreached:
            await self._confirm_unreached()
        return self._result

    async def _page(self, page: ObjectPage, number: int) -> None:
        wrong: list[ObjectResult] = []
        for listed in page.found:
            line = self._progress_file.line(listed.key)
            found = await self._with_every_version(listed, line)
            if found is None:
                continue
            outcome = self._accounted(found, line)
            if outcome is None:
                await self._late(found)
            elif outcome.fate is Fate.DIFFERS or line is None or line.fate is not outcome.fate:
                wrong.append(outcome)
        self._progress_file.correct(await self._rewriting.put_back(wrong))
        self._progress_file.correct(page.undecodable)
        twice = self._progress_file.seen_already((found.key for found in page.found), number)
        self._unreached |= dict.fromkeys((*twice, *page.repeated), "")
        self._progress_file.mark_seen((found.key for found in page.found), number)

    async def _with_every_version(
        self, found: ListedObject, line: ProgressLine | None
    ) -> ListedObject | None:
        """Return the object with a reading at every version that its first reading had; None if
        some version cannot be read now, so that its content cannot be compared.
        """
        if not self._compare or line is None or line.fate not in WRITTEN:
            return found
        if line.after != found.revision or line.digests.keys() <= found.digests.keys():
            return found
        try:
            now = await self._lister.read_one(found.key)
        except ApiError:
            now = found
        if now.revision == found.revision and not line.digests.keys() <= now.digests.keys():
            self._note_unproven(found.key)
            return None
        return now

    def _note_unproven(self, key: str) -> None:
        self._result.unproven += 1
        self._result.unproven_keys = [*self._result.unproven_keys, key][:_NAMED]

    def _accounted(self, found: ListedObject, line: ProgressLine | None) -> ObjectResult | None:
        """Return the outcome of the current object; None if it is not accounted for."""
        result = self._result
        if line is not None and line.fate in WRITTEN and line.after == found.revision:
            wrong = self._difference(line, found)
            if wrong is None:
                result.same += 1
                return ObjectResult(found.key, line.fate, line.after)
            result.differing += 1
            return wrong
        if line is not None and line.fate is Fate.DIFFERS:
            result.differing += 1
            return ObjectResult(found.key, line.fate, line.after, line.reason, line.message)
        if line is not None and line.fate is Fate.REFUSED and line.after == found.revision:
            return ObjectResult(found.key, line.fate, line.after, line.reason, line.message)
        if is_later(found.revision, self._progress_file.effective):
            if line is None:
                result.new += 1
            else:
                result.changed_since += 1
            return ObjectResult(found.key, Fate.OVERTAKEN, found.revision)
        if line is not None and line.fate in TROUBLED:
            return ObjectResult(found.key, line.fate, line.after, line.reason, line.message)
        return None

    async def _late(self, found: ListedObject) -> None:
        """Write an object that is not accounted for, and compare it."""
        (item,) = self._progress_file.take([found]) or [found]
        outcome = await self._rewriting.rewrite(item)
        self._progress_file.correct([outcome])
        if outcome.fate in WRITTEN:
            self._result.late += 1
            line = self._progress_file.line(found.key)
            try:
                now = await self._lister.read_one(found.key)
            except ApiError:
                return
            if now.uid != found.uid:
                self._unreached[found.key] = found.revision
            wrong = self._difference(line, now) if line is not None else None
            if wrong is not None:
                self._result.differing += 1
                self._progress_file.correct(await self._rewriting.put_back([wrong]))
        elif outcome.fate is Fate.OVERTAKEN and is_later(
            outcome.revision, self._progress_file.effective
        ):
            self._result.changed_since += 1
        elif outcome.fate is Fate.GONE:
            self._unreached[found.key] = found.revision
        elif outcome.fate not in TROUBLED:
            self._note_unproven(found.key)

    def _difference(self, line: ProgressLine, found: ListedObject) -> ObjectResult | None:
        wrong = difference(line, found) if self._compare else None
        return None if wrong is None else self._rewriting.results.refined(found, wrong)

    async def _confirm_gone(self, number: int) -> None:
        """Drop the failures of objects that were deleted since."""
        for key in self._progress_file.unseen(number):
            try:
                await self._lister.read_one(key)
            except NotFound:
                self._progress_file.correct([ObjectResult(key, Fate.GONE)])
            except ApiError:
                continue

    async def _confirm_unreached(self) -> None:
        """Quarantine objects that the next list still returns; the others were deleted
        meanwhile.
        """
        wrong: dict[str, ObjectResult] = {}
        listed: set[str] = set()
        token = ""
        while True:
            try:
                page = await self._lister.page(token)
            except (ApiError, Unlistable, Expired) as error:
                self._result.incomplete = f"the objects could not be listed again: {error}"
                return
            for found in page.found:
                if self._unreached.get(found.key) == found.revision:
                    text = "it is listed, and requests for its name do not reach it"
                    wrong[found.key] = unreachable(found.key, text)
            names = [found.key for found in page.found]
            twice = [*page.repeated, *(name for name in names if name in listed)]
            listed |= self._unreached.keys() & set(names)
            text = "two stored objects have this name, and requests reach only one of them"
            wrong |= {key: unreachable(key, text) for key in twice}
            token = page.token
            if not token:
                break
        self._progress_file.correct(wrong.values())


def is_later(revision: str, effective: str) -> bool:
    """Return whether a revision is above another; only numbers can be compared."""
    return revision.isdecimal() and effective.isdecimal() and int(revision) > int(effective)


def difference(line: ProgressLine, found: ListedObject) -> ObjectResult | None:
    """Return the parts in which an object differs from its first reading, if no other client wrote
    it since."""
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
        what += changed_parts(line.digests[version], found.digests[version])
    return differs(found.key, found.revision, ", ".join(wrong), dict.fromkeys(what))
