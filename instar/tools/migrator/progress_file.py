"""The progress file: which objects were listed and the outcome of each, so that a killed run can be
resumed.

Opened by the commands, written by ``rewrite_pass.py`` and ``verify.py``. The file is an SQLite
database, because it survives a kill at any moment and needs constant memory, also for a million
objects. Rows are written a page at a time. The file contains names and digests and, until a rewrite
is verified, the managedFields that the object should have after it. The contents of objects are in
``tools/migrator/undo/journal.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from instar.base.json_values import Object
from instar.kube.apply.applying import BEFORE_FIRST_APPLY
from instar.tools.file_lock import lock_beside
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.outcomes import (
    DONE,
    OWNERSHIP_LOST,
    TROUBLED,
    UNPROVEN,
    Fate,
    ObjectResult,
)
from instar.tools.migrator.ownership import lost, united

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rewrites (
  key TEXT PRIMARY KEY, revision TEXT NOT NULL, digests TEXT NOT NULL, fate TEXT NOT NULL,
  after TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '',
  message TEXT NOT NULL DEFAULT '', intended BLOB, seen INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
"""
_COLUMNS = "key, revision, digests, fate, after, reason, message, intended"
_UNSETTLED = (*TROUBLED, Fate.PENDING, Fate.DEFERRED)


def default_path(crd: str, server: str) -> Path:
    """Return the default progress file of a CRD's migration."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    place = hashlib.sha256(server.encode()).hexdigest()[:8]
    return Path(home) / "instar" / "migrate" / f"{crd}-{place}.progress"


class JournalBusy(Exception):
    """Another process uses this progress file."""


class ProgressFileError(Exception):
    """The file cannot be read or written, for example because the disk is full."""


class ProgressLine(NamedTuple):
    """One object's row."""

    key: str
    revision: str
    digests: dict[str, str]
    fate: Fate
    after: str
    reason: str
    message: str
    intended: bytes | None
    """Compressed managedFields that the write should leave, until it has."""


class ProgressFile:
    """A progress file; ``":memory:"`` for runs that are not resumed."""

    def __init__(self, path: str | Path = ":memory:") -> None:
        self._lock = None
        if str(path) != ":memory:":
            try:
                self._lock = lock_beside(path)
            except BlockingIOError:
                raise JournalBusy(f"another instar migrate is using {path}") from None
            # Messages hold values of objects, so only the owner may read them.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            os.chmod(path, 0o600)
        self.path = str(path)
        self._database = sqlite3.connect(path)
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
        self._database.executescript(_TABLES)

    def close(self, *, remove: bool = False) -> None:
        self._database.close()
        if self._lock is not None:
            if remove:
                for suffix in ("", "-wal", "-shm", ".lock"):
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            self._lock.close()

    def begin(self, identity: str) -> bool:
        """Return True if this run resumes an earlier run of the same migration; else start empty,
        except for objects whose managedFields an earlier write did not preserve.
        """
        if self._fact("identity") == identity:
            return True
        with self._transaction():
            self._database.execute("DELETE FROM rewrites WHERE intended IS NULL")
            self._database.execute("UPDATE rewrites SET digests = '{}', seen = 0")
            self._database.execute("DELETE FROM facts")
            self._set("identity", identity)
        return False

    @property
    def token(self) -> str:
        """Return the continue token of the next page."""
        return self._fact("token")

    @property
    def listed(self) -> bool:
        """Return whether every object was listed and tried."""
        return self._fact("listed") == "yes"

    @property
    def unfinished(self) -> bool:
        """Return whether some object failed or was not tried to the end, so that another pass may
        help.
        """
        return bool(set(_UNSETTLED) & self.counts().keys())

    @property
    def effective(self) -> str:
        """Return the revision from which on every write uses the storage version."""
        return self._fact("effective")

    def note_effective(self, revision: str) -> None:
        with self._transaction():
            self._set("effective", revision)

    def forget_position(self) -> None:
        """Drop the invalid token, so that listing starts again; finished objects are not
        repeated.
        """
        with self._transaction():
            self._set("token", "")
            self._set("listed", "")

    def take(self, found: Iterable[ListedObject]) -> list[ListedObject]:
        """Record the objects of a page before the first write; return those that still need it."""
        todo: list[ListedObject] = []
        with self._transaction():
            for item in found:
                known = self.line(item.key)
                if known is not None and self._is_settled(known, item):
                    continue
                item = _with_lost_owners(item, known)
                todo.append(item)
                revision, digests = item.revision, dict(item.digests)
                if known is not None and _was_interrupted(known, item):
                    # Killed between the write and the note of it: the first reading stands.
                    revision, digests = known.revision, {**digests, **known.digests}
                    todo[-1] = item.with_digests_of(digests)
                self._put(item, revision, digests, _packed(item.expected))
        return todo

    def finish_page(self, outcomes: Iterable[ObjectResult], token: str) -> None:
        """Record the outcomes of a page, and the token of the next page."""
        with self._transaction():
            for outcome in outcomes:
                self._finish(outcome)
            self._set("token", token)
            self._set("listed", "" if token else "yes")

    def correct(self, outcomes: Iterable[ObjectResult]) -> None:
        """Update the outcomes of single objects."""
        with self._transaction():
            for outcome in outcomes:
                self._finish(outcome)

    def mark_seen(self, keys: Iterable[str], number: int) -> None:
        with self._transaction():
            self._database.executemany(
                "UPDATE rewrites SET seen = ? WHERE key = ?", ((number, key) for key in keys)
            )

    def seen_already(self, keys: Iterable[str], number: int) -> list[str]:
        """Return the keys that this listing has returned before."""
        query = "SELECT seen FROM rewrites WHERE key = ?"
        rows = ((key, self._database.execute(query, (key,)).fetchone()) for key in keys)
        return [key for key, row in rows if row is not None and row[0] == number]

    def next_look(self) -> int:
        """Return the number of a new complete listing."""
        (highest,) = self._database.execute("SELECT max(seen) FROM rewrites").fetchone()
        return int(highest or 0) + 1

    def unseen(self, number: int) -> list[str]:
        """Return the unsettled objects that a complete listing did not return."""
        marks = ", ".join("?" * len(_UNSETTLED))
        rows = self._database.execute(
            f"SELECT key FROM rewrites WHERE seen < ? AND fate IN ({marks})",
            (number, *_UNSETTLED),
        )
        return [key for (key,) in rows]

    def forget(self, key: str) -> bool:
        """Remove the record of an object; return False if there is none."""
        with self._transaction():
            done = self._database.execute("DELETE FROM rewrites WHERE key = ?", (key,))
            self._set("token", "")
            self._set("listed", "")
        return done.rowcount > 0

    def accept(self, key: str) -> bool:
        """Accept the changed content of an object; return False if there is none to accept."""
        known = self.line(key)
        if known is None or known.fate not in (Fate.DIFFERS, Fate.REFUSED):
            return False
        return self.forget(key)

    def deferred(self) -> list[str]:
        rows = self._database.execute(
            "SELECT key FROM rewrites WHERE fate = ? ORDER BY key", (Fate.DEFERRED,)
        )
        return [key for (key,) in rows]

    def give_up(self) -> None:
        """Mark objects as failed that did not succeed in the last attempt."""
        with self._transaction():
            self._database.execute(
                "UPDATE rewrites SET fate = CASE reason WHEN ? THEN ? WHEN ? THEN ? ELSE ? END "
                "WHERE fate = ?",
                (
                    *(OWNERSHIP_LOST, Fate.DIFFERS),
                    *(UNPROVEN, Fate.REFUSED),
                    *(Fate.FAILED, Fate.DEFERRED),
                ),
            )

    def line(self, key: str) -> ProgressLine | None:
        with self._reported_errors():
            query = f"SELECT {_COLUMNS} FROM rewrites WHERE key = ?"
            row = self._database.execute(query, (key,)).fetchone()
            return None if row is None else _line(row)

    def counts(self) -> dict[Fate, int]:
        with self._reported_errors():
            rows = self._database.execute("SELECT fate, count(*) FROM rewrites GROUP BY fate")
            return {Fate(fate): count for fate, count in rows}

    def troubled(self) -> Iterator[ProgressLine]:
        marks = ", ".join("?" * len(TROUBLED))
        rows = self._database.execute(
            f"SELECT {_COLUMNS} FROM rewrites WHERE fate IN ({marks}) ORDER BY key", TROUBLED
        )
        return map(_line, rows)

    def _is_settled(self, known: ProgressLine, item: ListedObject) -> bool:
        """Return whether the object is done, or was changed by a rewrite and neither restored nor
        accepted since. Lost owners are written again by every run."""
        if known.fate is Fate.DIFFERS:
            if known.reason == OWNERSHIP_LOST:
                return False
            return known.after == item.revision or not item.same_content(known.digests)
        return known.after == item.revision and known.fate in DONE

    def _finish(self, outcome: ObjectResult) -> None:
        known = self.line(outcome.key)
        fate = outcome.fate
        if known is None and fate in TROUBLED:
            # It was not listed, or not in a form that could be taken.
            self._database.execute(
                "INSERT INTO rewrites (key, revision, digests, fate) VALUES (?, '', '{}', ?)",
                (outcome.key, fate),
            )
        if known is not None and known.fate is Fate.PENDING and fate is Fate.CURRENT:
            fate = Fate.CURRENT if known.revision == outcome.revision else Fate.REWRITTEN
        # Owners that the write did not keep are needed for the next one.
        kept = outcome.reason == OWNERSHIP_LOST
        intended = known.intended if known is not None and kept else None
        self._database.execute(
            "UPDATE rewrites SET fate = ?, after = ?, reason = ?, message = ?, intended = ? "
            "WHERE key = ?",
            (fate, outcome.revision, outcome.reason, outcome.message, intended, outcome.key),
        )
        if outcome.reading is not None:
            self._database.execute(
                "UPDATE rewrites SET digests = ? WHERE key = ?",
                (json.dumps(dict(outcome.reading.digests)), outcome.key),
            )

    def _put(
        self, item: ListedObject, revision: str, digests: dict[str, str], intended: bytes | None
    ) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO rewrites (key, revision, digests, fate, intended) "
            "VALUES (?, ?, ?, ?, ?)",
            (item.key, revision, json.dumps(digests), Fate.PENDING, intended),
        )

    def _fact(self, name: str) -> str:
        with self._reported_errors():
            query = "SELECT value FROM facts WHERE name = ?"
            row = self._database.execute(query, (name,)).fetchone()
            return "" if row is None else str(row[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._reported_errors(), self._database:
            yield

    @contextmanager
    def _reported_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            text = f"the progress file {self.path} cannot be read or written: {error}"
            raise ProgressFileError(text) from None

    def _set(self, name: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def _was_interrupted(known: ProgressLine, item: ListedObject) -> bool:
    """Return whether a write was started without a recorded end, and the content is unchanged."""
    return known.fate is Fate.PENDING and item.same_content(known.digests)


def _with_lost_owners(item: ListedObject, known: ProgressLine | None) -> ListedObject:
    """Return the object with the managedFields that an earlier write should have preserved."""
    if known is None or known.intended is None:
        return item
    intended = _unpacked(known.intended)
    if item.entries and not _are_lost(intended, item.entries, known):
        return item
    # A server gives what has no owner to this manager when another client applies.
    known_before = {BEFORE_FIRST_APPLY} & {entry.get("manager") for entry in intended}
    added = [
        entry
        for entry in item.entries
        if known_before or entry.get("manager") != BEFORE_FIRST_APPLY
    ]
    return item.with_managed_fields(united(intended, added))


def _are_lost(intended: list[Object], entries: Sequence[Object], known: ProgressLine) -> bool:
    """Return whether the server dropped the owners. It drops all of them at once; so after a kill
    they are lost if none is as it was: other clients may have written the object since.
    """
    if known.reason == OWNERSHIP_LOST:
        return bool(lost(intended, entries))
    if known.fate is not Fate.PENDING:
        return False
    kept = {(entry.get("manager"), entry.get("time")) for entry in entries}
    return not any((entry.get("manager"), entry.get("time")) in kept for entry in intended)


def _packed(entries: list[Object]) -> bytes | None:
    return zlib.compress(json.dumps(entries).encode(), 1) if entries else None


def _unpacked(data: bytes) -> list[Object]:
    entries: list[Object] = json.loads(zlib.decompress(data))
    return entries


def _line(row: tuple[str, str, str, str, str, str, str, bytes | None]) -> ProgressLine:
    key, revision, digests, fate, after, reason, message, intended = row
    return ProgressLine(
        key, revision, json.loads(digests), Fate(fate), after, reason, message, intended
    )
