"""After the rewriting: does every object still say what it said before, at every served version?"""

from __future__ import annotations

from dataclasses import dataclass

from instar.errors import ApiError, Expired
from instar.migrator.journal import Journal, Line
from instar.migrator.outcomes import Fate, Outcome, differs
from instar.migrator.pages import Found, Lister, Unlistable
from instar.migrator.progress import Progress

_WRITTEN = (Fate.REWRITTEN, Fate.CURRENT)


@dataclass
class Verification:
    same: int = 0
    """Objects whose content is the same at every version compared."""
    differing: int = 0
    changed_since: int = 0
    """Written by somebody else after us: nothing can be said."""
    new: int = 0
    """Not there when the run listed them."""
    incomplete: str = ""
    """Why not everything was looked at."""


async def verify(lister: Lister, journal: Journal, progress: Progress) -> Verification:
    result = Verification()
    total = sum(journal.counts().values())
    progress.begin("verifying", total)
    token = ""
    while True:
        try:
            page = await lister.page(token)
        except (ApiError, Unlistable, Expired) as error:
            result.incomplete = f"the objects could not be listed again: {error}"
            return result
        journal.correct(
            [wrong for found in page.found if (wrong := _compare(found, journal, result))]
        )
        progress.advance(len(page.found))
        token = page.token
        if not token:
            return result


def _compare(found: Found, journal: Journal, result: Verification) -> Outcome | None:
    """What is wrong with an object, if anything; counts it in ``result``."""
    line = journal.line(found.key)
    if line is None:
        result.new += 1
        return None
    if line.fate not in _WRITTEN or line.after != found.revision:
        result.changed_since += 1
        return None
    wrong = difference(line, found)
    if wrong is None:
        result.same += 1
    else:
        result.differing += 1
    return wrong


def difference(line: Line, found: Found) -> Outcome | None:
    """How an object differs from its first reading, if nobody else wrote it since."""
    if line.after != found.revision:
        return None
    wrong = [
        version
        for version, before in line.digests.items()
        if version in found.digests and found.digests[version] != before
    ]
    return differs(found.key, found.revision, ", ".join(sorted(wrong))) if wrong else None
