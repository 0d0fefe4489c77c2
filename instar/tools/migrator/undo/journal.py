"""The undo journal of a migration: each object as every served version showed it before its write.

``rewrite_pass.py`` records a page here before the page is written, and the record is on disk
(fsync) before the first write is sent. ``put_back.py`` reads it to restore objects: at once when a
rewrite changed an object, and for ``instar migrate --undo`` and the rollback of ``instar upgrade``.

The file is in the folder of the progress file. It contains the objects themselves, so only its
owner may read it (mode 0600) and values are compressed. Its size is bounded: a run stops before the
file would grow beyond the limit, and three journals of earlier runs are kept. SQLite in WAL mode
with full synchronisation survives a kill at any moment.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import orjson

from instar.base.json_values import Object
from instar.tools.file_lock import lock_beside
from instar.tools.migrator.listed_object import ListedObject

DEFAULT_LIMIT = 2 << 30
"""Bytes of compressed objects."""
_KEPT = 3
_FORMAT = "1"
_SIDE_FILES = ("", "-wal", "-shm")
_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
  key TEXT PRIMARY KEY, uid TEXT NOT NULL, revision TEXT NOT NULL, after TEXT NOT NULL DEFAULT '',
  undone INTEGER NOT NULL DEFAULT 0, readings BLOB NOT NULL
);
"""
_COLUMNS = "key, uid, revision, after, undone, readings"


class UndoJournalError(Exception):
    """The journal cannot be used; ``str()`` is a one-line reason."""


class JournalledObject(NamedTuple):
    """One object as it was before the write."""

    key: str
    uid: str
    revision: str
    after: str
    """The resourceVersion that the write left; empty when it is not known."""
    undone: bool
    readings: dict[str, Object]
    """By served version, with managedFields."""


class JournalSubject(NamedTuple):
    """The CRD to which the objects of a journal belong."""

    server: str
    crd: str
    uid: str


class UndoJournal:
    """An undo journal; ``":memory:"`` for runs on a copy. Call ``begin`` before ``record``."""

    def __init__(self, path: str | Path = ":memory:", *, limit: int = DEFAULT_LIMIT) -> None:
        """Raises ``UndoJournalError`` if the file cannot be created or another process uses it."""
        self.path = str(path)
        self._limit = limit
        self._lock: IO[str] | None = None
        self._database: sqlite3.Connection | None = None
        if self.path != ":memory:":
            self._lock = _locked(self.path)

    def begin(self, subject: JournalSubject, *, resumed: bool) -> None:
        """Open the journal for a run; a run that is not resumed starts an empty journal."""
        if not resumed and self.path != ":memory:" and Path(self.path).exists():
            _rotate(self.path)
        self._open()
        if not self.subject.crd:
            with _journal_errors(self.path), self._db:
                facts = {"format": _FORMAT, **subject._asdict()}
                self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def reopen(self) -> None:
        """Open an existing journal, to restore its objects. Raises ``UndoJournalError`` for a file
        that is not a journal, and does not change it.
        """
        if not Path(self.path).is_file():
            raise UndoJournalError(f"{self.path}: there is no such journal")
        if _format_of(self.path) != _FORMAT:
            raise UndoJournalError(f"{self.path} is not an undo journal of this version of instar")
        self._open()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def subject(self) -> JournalSubject:
        return JournalSubject(self._fact("server"), self._fact("crd"), self._fact("uid"))

    @property
    def size(self) -> int:
        """Return the number of bytes of the compressed objects."""
        with _journal_errors(self.path):
            (found,) = self._db.execute("SELECT sum(length(readings)) FROM objects").fetchone()
        return int(found or 0)

    def record(self, page: Iterable[ListedObject]) -> None:
        """Store the objects of a page; they are on disk when this returns.

        Raises ``UndoJournalError`` when they would exceed the limit or the disk is full; then
        nothing of the page may be written. The first reading of an object is kept when a run goes
        on after a kill, unless another client has written the object since.
        """
        rows = [self._row(found) for found in page]
        fresh = [row for row in rows if row is not None]
        size = sum(len(row[-1]) for row in fresh)
        if self.size + size > self._limit:
            raise UndoJournalError(
                f"the undo journal {self.path} would exceed {self._limit >> 20} MiB; give a larger "
                "--journal-limit"
            )
        with _journal_errors(self.path), self._db:
            self._db.executemany(
                "INSERT OR REPLACE INTO objects (key, uid, revision, readings) VALUES (?, ?, ?, ?)",
                fresh,
            )

    def note_written(self, revisions: Mapping[str, str]) -> None:
        """Record the resourceVersion that each write produced, by key."""
        with _journal_errors(self.path), self._db:
            self._db.executemany(
                "UPDATE objects SET after = ? WHERE key = ?",
                ((revision, key) for key, revision in revisions.items()),
            )

    def drop(self, keys: Iterable[str]) -> None:
        """Remove objects that were not written in the end."""
        with _journal_errors(self.path), self._db:
            self._db.executemany("DELETE FROM objects WHERE key = ?", ((key,) for key in keys))

    def note_undone(self, key: str) -> None:
        with _journal_errors(self.path), self._db:
            self._db.execute("UPDATE objects SET undone = 1 WHERE key = ?", (key,))

    def entry(self, key: str) -> JournalledObject | None:
        with _journal_errors(self.path):
            query = f"SELECT {_COLUMNS} FROM objects WHERE key = ?"
            row = self._db.execute(query, (key,)).fetchone()
            return None if row is None else _entry(row)

    def keys(self) -> list[str]:
        """Return the keys of all objects, in order."""
        with _journal_errors(self.path):
            return [key for (key,) in self._db.execute("SELECT key FROM objects ORDER BY key")]

    def entries(self) -> Iterator[JournalledObject]:
        """Yield every object; only one is in memory at a time."""
        for key in self.keys():
            found = self.entry(key)
            if found is not None:
                yield found

    @property
    def _db(self) -> sqlite3.Connection:
        if self._database is None:
            raise UndoJournalError(f"the undo journal {self.path} is not open")
        return self._database

    def _open(self) -> None:
        try:
            if self.path != ":memory:":
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
                os.chmod(self.path, 0o600)
            self._database = sqlite3.connect(self.path)
            self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;")
            self._database.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise UndoJournalError(f"{self.path}: {error}") from None

    def _row(self, found: ListedObject) -> tuple[str, str, str, bytes] | None:
        known = self.entry(found.key)
        if known is not None and _is_still_first(known, found):
            return None
        return found.key, found.uid, found.revision, _packed(found.readings)

    def _fact(self, name: str) -> str:
        with _journal_errors(self.path):
            row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
            return "" if row is None else str(row[0])


@contextmanager
def _journal_errors(path: str) -> Iterator[None]:
    """Raise an ``UndoJournalError`` for disk errors and damaged contents."""
    try:
        yield
    except (sqlite3.Error, zlib.error, orjson.JSONDecodeError) as error:
        text = f"the undo journal {path} cannot be read or written: {error}"
        raise UndoJournalError(text) from None


def _format_of(path: str) -> str:
    """Return the format recorded in a file, without changing the file; empty for any other file."""
    try:
        address = f"{Path(path).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as database:
            query = "SELECT value FROM facts WHERE name = 'format'"
            row = database.execute(query).fetchone()
            return "" if row is None else str(row[0])
    except sqlite3.Error as error:
        if _is_unreadable(error):
            raise UndoJournalError(f"{path}: {error}") from None
        return ""


def _is_unreadable(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_IOERR,
    )


def journal_path(progress: str | Path) -> Path:
    """Return the path of the undo journal of a run with this progress file."""
    return Path(progress).with_suffix(".undo")


def _is_still_first(known: JournalledObject, found: ListedObject) -> bool:
    """Return whether no other client can have written the object since it was recorded."""
    if known.undone or known.uid != found.uid:
        return False
    if known.after:
        return known.after == found.revision
    if known.revision == found.revision:
        return False
    shared = known.readings.keys() & found.readings.keys()
    return any(found.has_content(version, known.readings[version]) for version in shared)


def _locked(path: str) -> IO[str]:
    try:
        return lock_beside(path)
    except BlockingIOError:
        raise UndoJournalError(f"another instar process is using {path}") from None
    except OSError as error:
        raise UndoJournalError(f"{path}: {error}") from None


def _rotate(path: str) -> None:
    """Keep the journals of the last runs as ``.1``, ``.2`` and ``.3``."""
    if _is_empty(path):
        for suffix in _SIDE_FILES:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        return
    for number in range(_KEPT, 0, -1):
        older = f"{path}.{number}"
        newer = path if number == 1 else f"{path}.{number - 1}"
        for suffix in _SIDE_FILES:
            if Path(f"{newer}{suffix}").exists():
                os.replace(f"{newer}{suffix}", f"{older}{suffix}")
            else:
                Path(f"{older}{suffix}").unlink(missing_ok=True)


def _is_empty(path: str) -> bool:
    try:
        with closing(sqlite3.connect(path)) as database:
            (count,) = database.execute("SELECT count(*) FROM objects").fetchone()
            return not count
    except sqlite3.Error:
        return False


def _packed(readings: Mapping[str, Object]) -> bytes:
    return zlib.compress(orjson.dumps(dict(readings)), 1)


def _entry(row: tuple[str, str, str, str, int, bytes]) -> JournalledObject:
    key, uid, revision, after, undone, data = row
    readings: dict[str, Object] = orjson.loads(zlib.decompress(data))
    return JournalledObject(key, uid, revision, after, bool(undone), readings)
