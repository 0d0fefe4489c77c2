"""The report of a migration run, as text and as JSON.

``migration.py`` makes it; ``instar migrate``, ``instar upgrade`` and the console print it.
"""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, datetime

from instar.base.escaping import shell_word
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.base.times import time_text
from instar.tools.migrator.outcomes import TROUBLED, WOULD_CHANGE, Fate, Quarantined
from instar.tools.migrator.plan import Plan, human
from instar.tools.migrator.rewrite_checks.pass_record import PassRecord
from instar.tools.migrator.rewrite_checks.rewrite_checker import ChangeTally
from instar.tools.migrator.undo.put_back import UndoReport
from instar.tools.migrator.verify import Verification

_MAX_SHOWN_OBJECTS = 20
"""Of more objects only this number is named in the text."""
_MAX_SHOWN_REFUSALS = 2
"""Of more objects that a rewrite would change only this number is named; fields are counted."""


@dataclass
class MigrationReport:
    """Result of a migration: the plan, and what became of the objects."""

    plan: Plan
    dry_run: bool = False
    resumed: bool = False
    counts: dict[Fate, int] = field(default_factory=dict)
    quarantine: list[Quarantined] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    restored: int = 0
    """Objects whose owners the server had dropped and were written again."""
    changes: ChangeTally = field(default_factory=ChangeTally)
    """Fields that rewrites would have changed, so that objects were not written."""
    put_back: UndoReport = field(default_factory=UndoReport)
    """Objects that a rewrite changed and that were put back."""
    verification: Verification | None = None
    stopped: str = ""
    """Why the run ended early."""
    pruned: bool = False
    not_pruned: str = ""
    """Why storedVersions stays as it is."""
    seconds: float = 0.0
    progress_file: str = ""
    undo_journal: str = ""
    revision: str = ""
    """A resourceVersion of the collection: every later write used the storage version."""

    @property
    def ok(self) -> bool:
        if self.stopped or self.quarantine:
            return False
        return self.dry_run or self.pruned or not self.plan.needed

    def pass_record(self) -> PassRecord:
        """Return the record of this pass; only for a run that trimmed storedVersions."""
        live = self.plan.live
        return PassRecord(
            server=self.plan.facts.server,
            crd=live.name,
            uid=live.crd.uid,
            generation=live.crd.generation,
            storage=live.storage,
            crd_revision=live.revision,
            revision=self.revision,
            objects=self.total,
            finished=time_text(datetime.now(UTC)),
        )

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def troubled(self) -> int:
        return sum(self.counts.get(fate, 0) for fate in TROUBLED)

    def to_json(self) -> Object:
        verification = self.verification
        return {
            "plan": self.plan.to_json(),
            "ok": self.ok,
            "dryRun": self.dry_run,
            "resumed": self.resumed,
            "objects": {fate.value: count for fate, count in sorted(self.counts.items())},
            "stale": self.counts.get(Fate.REWRITTEN, 0),
            "quarantined": self.troubled,
            "quarantine": [
                {"key": item.key, "reason": item.reason, "message": item.message, "fix": item.fix}
                for item in self.quarantine
            ],
            "unreadable": self.unreadable,
            "verification": None
            if verification is None
            else {
                "same": verification.same,
                "differing": verification.differing,
                "changedSince": verification.changed_since,
                "new": verification.new,
                "late": verification.late,
                "unproven": verification.unproven_keys,
                "incomplete": verification.incomplete,
            },
            "ownershipRestored": self.restored,
            "changes": self.changes.to_json(),
            "putBack": self.put_back.to_json(),
            "progressFile": self.progress_file,
            "undoJournal": self.undo_journal,
            "stopped": self.stopped,
            "pruned": self.pruned,
            "notPruned": self.not_pruned,
            "seconds": round(self.seconds, 3),
        }

    def lines(self) -> list[str]:
        name = self.plan.live.name
        if not self.plan.needed and not self.total:
            return [f"{name}: nothing to do"]
        rate = self.total / self.seconds if self.seconds else 0.0
        parts = [f"{self.counts[fate]} {_WORDS[fate]}" for fate in Fate if self.counts.get(fate)]
        head = "dry run: " if self.dry_run else "resumed: " if self.resumed else ""
        lines = [
            f"{name}: {head}{counted(self.total, 'object')} in {human(self.seconds)} "
            f"({rate:.0f}/s): " + (", ".join(parts) or "none")
        ]
        lines += self._verification_lines()
        lines += [f"  {line}" for line in self.changes.lines(self.plan.live.storage)]
        lines += [f"  cannot be read at every version: {key}: {why}" for key, why in self._bad()]
        shown = self._shown_quarantine()
        for item in shown:
            lines += [f"  {item.key}: {item.reason}: {item.message}", f"    fix: {item.fix}"]
        more = self.troubled - len(shown)
        if more:
            lines.append(f"  and {more} more (--report names a thousand)")
        if self.restored:
            lines.append(
                f"  the server dropped the owners of {counted(self.restored, 'object')}; written "
                "again"
            )
        if self.put_back.objects:
            lines += [f"  {line}" for line in self.put_back.lines()]
        if self.stopped:
            lines.append(f"  stopped: {self.stopped}; run the same command again to go on")
        if self.pruned:
            lines.append(f"  storedVersions is now {self.plan.live.storage}")
        elif self.not_pruned:
            lines.append(f"  storedVersions was not changed: {self.not_pruned}")
            if self.progress_file and self.progress_file != ":memory:":
                lines.append(f"  what is known so far: {self.progress_file}")
        if self.counts.get(Fate.REWRITTEN) and self.undo_journal not in ("", ":memory:"):
            lines.append(
                "  to put every object back: instar migrate --undo "
                f"{shell_word(str(self.undo_journal))}"
            )
        return lines

    def _shown_quarantine(self) -> list[Quarantined]:
        """Return the objects to list; only a few of those that would change, because the changes
        are counted by field.
        """
        kept: list[Quarantined] = []
        refused = 0
        for item in self.quarantine:
            refused += item.reason == WOULD_CHANGE
            if (
                item.reason != WOULD_CHANGE
                or refused <= _MAX_SHOWN_REFUSALS
                or not self.changes.changes
            ):
                kept.append(item)
        return kept[:_MAX_SHOWN_OBJECTS]

    def _bad(self) -> list[tuple[str, str]]:
        return list(self.unreadable.items())[:_MAX_SHOWN_OBJECTS]

    def _verification_lines(self) -> list[str]:
        found = self.verification
        if found is None:
            return []
        versions = ", ".join(self.plan.live.read_versions)
        lines = [f"  verified at {versions}: {found.same} the same, {found.differing} different"]
        if not found.compared:
            lines = [f"  accounted for, contents not compared: {found.same}"]
        if found.changed_since or found.new:
            lines[0] += (
                f"; written by others at {self.plan.live.storage} since: "
                f"{found.changed_since}, new: {found.new}"
            )
        if found.unproven:
            keys = ", ".join(found.unproven_keys[:_MAX_SHOWN_OBJECTS])
            lines.append(f"  nothing accounts for {counted(found.unproven, 'object')}: {keys}")
        if found.incomplete:
            lines.append(f"  verification is incomplete: {found.incomplete}")
        return lines


_WORDS = {
    Fate.PENDING: "not finished",
    Fate.REWRITTEN: "stale and rewritten",
    Fate.CURRENT: "already current",
    Fate.OVERTAKEN: "rewritten by others",
    Fate.GONE: "gone meanwhile",
    Fate.WOULD_PASS: "would pass",
    Fate.DEFERRED: "without an answer",
    Fate.FAILED: "failed",
    Fate.DIFFERS: "changed content",
    Fate.REFUSED: "would change and were not written",
}
