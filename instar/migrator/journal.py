"""The progress file: what was listed and what became of it, so that a killed run can go on.

SQLite, because it survives a kill at any moment and keeps the memory of a run of a million
objects flat. Rows are written a page at a time. Holds digests and names, never content.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from instar.migrator.outcomes import DONE, Fate, Outcome
from instar.migrator.pages import Found

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
  key TEXT PRIMARY KEY, revision TEXT NOT NULL, digests TEXT NOT NULL, fate TEXT NOT NULL,
  after TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
"""


class JournalBusy(Exception):
    """Another process uses this progress file."""


class Line(NamedTuple):
    """One object's row."""

    key: str
    revision: str
    digests: dict[str, str]
    fate: Fate
    after: str
    reason: str
    message: str


class Journal:
    """``":memory:"`` for runs nobody means to resume."""

    def __init__(self, path: str | Path = ":memory:") -> None:
        self._lock = None
        if str(path) != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._lock = Path(f"{path}.lock").open("w")  # noqa: SIM115 - held as long as we live
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._lock.close()
                raise JournalBusy(f"another instar migrate is using {path}") from None
        self._path = path
        self._database = sqlite3.connect(path)
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
        self._database.executescript(_TABLES)

    def close(self, *, remove: bool = False) -> None:
        self._database.close()
        if self._lock is not None:
            if remove:
                for suffix in ("", "-wal", "-shm", ".lock"):
                    Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            self._lock.close()

    def begin(self, identity: str) -> bool:
        """True when this goes on with an earlier run of the same thing; else a clean start."""
        if self._fact("identity") == identity:
            return True
        with self._database:
            self._database.execute("DELETE FROM objects")
            self._database.execute("DELETE FROM facts")
            self._set("identity", identity)
        return False

    @property
    def token(self) -> str:
        """Where listing goes on."""
        return self._fact("token")

    @property
    def listed(self) -> bool:
        """Every object has been listed and tried."""
        return self._fact("listed") == "yes"

    @property
    def unfinished(self) -> bool:
        """Something failed, or was never tried to the end: another pass may mend it."""
        return bool({Fate.FAILED, Fate.DIFFERS, Fate.PENDING} & self.counts().keys())

    def forget_position(self) -> None:
        """The token leads nowhere: list from the start; finished objects are not done again."""
        with self._database:
            self._set("token", "")
            self._set("listed", "")

    def take(self, found: Iterable[Found]) -> list[Found]:
        """Note what is about to be rewritten; those that still need it."""
        todo: list[Found] = []
        with self._database:
            for item in found:
                known = self.line(item.key)
                if known is not None and self._is_settled(known, item):
                    continue
                todo.append(item)
                if known is not None and self._was_ours(known, item):
                    # Killed between the write and the note of it: the first reading stands.
                    self._put(item.key, known.revision, known.digests, known.fate)
                else:
                    self._put(item.key, item.revision, dict(item.digests), Fate.PENDING)
        return todo

    def settle(self, outcomes: Iterable[Outcome], token: str) -> None:
        """A page is done: its outcomes, and where the next one begins."""
        with self._database:
            for outcome in outcomes:
                self._settle(outcome)
            self._set("token", token)
            self._set("listed", "" if token else "yes")

    def correct(self, outcomes: Iterable[Outcome]) -> None:
        """Verification found out more."""
        with self._database:
            for outcome in outcomes:
                self._settle(outcome)

    def line(self, key: str) -> Line | None:
        row = self._database.execute("SELECT * FROM objects WHERE key = ?", (key,)).fetchone()
        return None if row is None else _line(row)

    def counts(self) -> dict[Fate, int]:
        rows = self._database.execute("SELECT fate, count(*) FROM objects GROUP BY fate")
        return {Fate(fate): count for fate, count in rows}

    def troubled(self) -> Iterator[Line]:
        rows = self._database.execute(
            "SELECT * FROM objects WHERE fate IN (?, ?) ORDER BY key", (Fate.FAILED, Fate.DIFFERS)
        )
        return map(_line, rows)

    def _is_settled(self, known: Line, item: Found) -> bool:
        """Done, or changed by a rewrite and not mended since: a second look would not see it."""
        return known.after == item.revision and known.fate in DONE | {Fate.DIFFERS}

    def _was_ours(self, known: Line, item: Found) -> bool:
        pending = known.fate is Fate.PENDING and known.revision != item.revision
        return pending and bool(known.digests) and known.digests == dict(item.digests)

    def _settle(self, outcome: Outcome) -> None:
        known = self.line(outcome.key)
        fate = outcome.fate
        if known is not None and known.fate is Fate.PENDING and fate is Fate.CURRENT:
            fate = Fate.CURRENT if known.revision == outcome.revision else Fate.REWRITTEN
        self._database.execute(
            "UPDATE objects SET fate = ?, after = ?, reason = ?, message = ? WHERE key = ?",
            (fate, outcome.revision, outcome.reason, outcome.message, outcome.key),
        )

    def _put(self, key: str, revision: str, digests: dict[str, str], fate: Fate) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO objects (key, revision, digests, fate) VALUES (?, ?, ?, ?)",
            (key, revision, json.dumps(digests), fate),
        )

    def _fact(self, name: str) -> str:
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return "" if row is None else str(row[0])

    def _set(self, name: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def _line(row: tuple[str, str, str, str, str, str, str]) -> Line:
    key, revision, digests, fate, after, reason, message = row
    return Line(key, revision, json.loads(digests), Fate(fate), after, reason, message)
