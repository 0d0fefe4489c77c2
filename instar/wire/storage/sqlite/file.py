"""SQLite store file: locking, format checks, creation and connections.

Used by ``store.py`` and ``wire/storage/verify.py``. Nothing is written before the file is known to
be ours and its rows can be read: a foreign or structurally broken file is refused and left
untouched. SQLite keeps no checksums, so damaged values are found on reading, or by ``instar storage
verify``.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from instar.wire.storage.revision_index import RevisionIndex
from instar.wire.storage.store import StoreError, StoreInUse, StoreLost, UnusableStore

APPLICATION_ID = 0x696E7374  # "inst"
FORMAT = 1
_FULL = 1 << 20
"""Bytes: a store opens its log and its shared memory in a few hundred kilobytes."""
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
_CHECKPOINT_PAGES = 1000
"""Pages after which the WAL is checkpointed. A small log is overwritten in place, three times as
fast as growing it, and a checkpoint delays the next write by milliseconds only."""
_LOG_BYTES = 64 << 20
_ALONE = "&vfs=unix-excl" if os.name == "posix" else ""
"""Locks the file for this process and keeps the WAL index in process memory. The default is a
mapped ``-shm`` file; truncating that would kill every process that maps it."""
_LOCK_PATIENCE = 0.1  # the event loop blocks while another program holds the lock
_SCHEMA = (
    "CREATE TABLE log(revision INTEGER PRIMARY KEY, key TEXT NOT NULL, value BLOB)",
    "CREATE TABLE compaction(revision INTEGER NOT NULL)",
    "INSERT INTO compaction VALUES (0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)


def _disk_note(path: Path) -> str:
    """Return how little space is left, if it is little: SQLite calls that an I/O error when it
    opens a file."""
    try:
        free = shutil.disk_usage(path.parent).free
    except OSError:
        return ""
    return f"; the disk is full ({free >> 10} KiB are free)" if free < _FULL else ""


class SqliteFile:
    """An open store file, locked for this process: one connection to write, one to read.

    Two connections, because a reader must not wait for the writer's fsync.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path).resolve()
        self._lock = _lock(self.path)
        try:
            if not is_ours(self.path):
                _create(self.path)
            found = os.stat(self.path)
            self._identity = (found.st_dev, found.st_ino)
            # a read-write connection would create side files
            with closing(_connect(self.path, "ro")) as first:
                self.index = _load_index(first)
            self.writer = _connect(self.path, "rw", _ALONE)
            try:
                _prepare(self.writer, self.path)
                self._log = self.path.with_name(f"{self.path.name}-wal")
                self.note_sizes()
                self.reader = self.another_reader()
            except BaseException:
                self.writer.close()
                raise
        except sqlite3.Error as error:
            os.close(self._lock)
            text = f"{self.path}: cannot be opened: {error}{_disk_note(self.path)}"
            raise UnusableStore(text) from error
        except BaseException:
            os.close(self._lock)
            raise

    def check_identity(self) -> None:
        """Raise ``StoreLost`` if the file at the path was replaced since it was opened, because
        writes to the old one would be lost with the process."""
        try:
            found = os.stat(self.path)
            same = (found.st_dev, found.st_ino) == self._identity
            ours = same and found.st_size >= _HEADER_BYTES
        except OSError:
            same = ours = False
        if ours:
            return
        what = "was emptied" if same else "was removed or replaced"
        raise StoreLost(
            f"{self.path}: the file {what} while in use; stop, put it back, start again"
        )

    def check_sizes(self) -> None:
        """Raise ``StoreLost`` if the file or its log became shorter since the last commit. SQLite
        itself truncates only the log, and only in a commit."""
        if _size(self.path) < self._sizes[0] or _size(self._log) < self._sizes[1]:
            raise StoreLost(
                f"{self.path}: the file was cut short while in use; take a snapshot while this "
                "server runs (instar snapshot), stop it, and begin with that (instar serve --from)"
            )

    def note_sizes(self) -> None:
        self._sizes = _size(self.path), _size(self._log)

    def another_reader(self) -> sqlite3.Connection:
        """Open another read-only connection. Close it before the file."""
        reader = _connect(self.path, "rw", _ALONE)
        reader.execute("PRAGMA query_only = ON")
        return reader

    def rows(self, after: int, until: int) -> Iterator[tuple[int, str, bytes | None]]:
        return self.reader.execute(
            "SELECT revision, key, value FROM log WHERE revision > ? AND revision <= ?"
            " ORDER BY revision",
            (after, until),
        )

    def close(self) -> None:
        # first, so that the writer is the last connection and checkpoints the WAL
        self.reader.close()
        self.writer.close()
        os.close(self._lock)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _load_index(connection: sqlite3.Connection) -> RevisionIndex:
    (compacted,) = connection.execute("SELECT revision FROM compaction").fetchone()
    index = RevisionIndex(compacted)
    index.load(connection.execute("SELECT revision, key, value IS NULL FROM log ORDER BY revision"))
    index.revision = max(index.revision, compacted)
    return index


def _lock(path: Path) -> int:
    """Lock the file for one process: a second writer would assign the same revisions again."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnusableStore(f"{path}: cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise in_use(path) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    return lock


def in_use(path: Path) -> StoreError:
    """Return the error for a locked file; the lock file names the process that holds it."""
    try:
        owner = (
            path.with_name(path.name + ".lock")
            .read_text(encoding="utf-8", errors="replace")
            .strip()
        )
    except OSError:
        owner = ""
    return StoreInUse(f"{path}: in use by another process (pid {owner or 'unknown'})")


def is_ours(path: Path) -> bool:
    """Return False for an absent or empty file; raise for a foreign one.

    The header is read without SQLite, which would touch the files beside it.
    """
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UnusableStore(f"{path}: cannot be read: {error.strerror}") from error
    if not header:
        return False
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise UnusableStore(f"{path}: not a SQLite database; left untouched")
    format_, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
    if application != APPLICATION_ID:
        raise UnusableStore(f"{path}: a SQLite database of another program; left untouched")
    if format_ != FORMAT:
        raise UnusableStore(f"{path}: has format {format_}, this version of instar reads {FORMAT}")
    return True


def _create(path: Path) -> None:
    """Create the tables in rollback mode, so that the header is in the file itself, then use WAL.

    The file will hold Secrets, so only its owner may read it; SQLite's side files inherit that.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise UnusableStore(f"{path}: cannot be opened: {error.strerror}") from error
    with closing(_connect(path, "rwc")) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # Again, because a crash right after creation may have left the file in rollback mode.
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise UnusableStore(f"{path}: SQLite cannot keep a write-ahead log on this file system")
    connection.execute("SELECT revision FROM compaction").fetchone()  # takes the lock
    if _ALONE:
        path.with_name(path.name + "-shm").unlink(missing_ok=True)  # no other process has it open
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")


def _connect(path: Path, mode: str, more: str = "") -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}{more}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_LOCK_PATIENCE,
    )
