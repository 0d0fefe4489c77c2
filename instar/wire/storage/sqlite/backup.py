"""Consistent copy of the SQLite file of a running server, by SQLite's online backup.

Used by ``store.py``. The copy is one read transaction in a thread: writers go on, and what they
write meanwhile is not in it. It is a file beside the store, which only its owner can read.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from instar.wire.storage.sqlite.file import SqliteFile
from instar.wire.storage.store import Unavailable

_MARK = ".backup-"
_ALL_PAGES = -1
"""In one step: with several, each write of the server would start the copy anew."""


class BackupJob:
    """Makes one copy at a time."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._task: asyncio.Task[Path] | None = None
        _remove_leftovers(file.path)

    async def run(self) -> Path:
        """Return the path of a new copy. A second caller is refused while the first one waits."""
        if self._task is not None:
            raise Unavailable("another backup is being made; try again when it has ended")
        self._check_room()
        task = self._task = asyncio.create_task(asyncio.to_thread(_copy, self._file))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_discard)
            raise
        finally:
            task.add_done_callback(self._ended)

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def _ended(self, task: asyncio.Task[Path]) -> None:
        self._task = None

    def _check_room(self) -> None:
        path = self._file.path
        wanted, free = path.stat().st_size, shutil.disk_usage(path.parent).free
        if wanted > free:
            raise Unavailable(
                f"no room for a backup in {path.parent}: {wanted} bytes needed, {free} free"
            )


def _copy(file: SqliteFile) -> Path:
    handle, name = tempfile.mkstemp(prefix=file.path.name + _MARK, dir=file.path.parent)
    os.close(handle)
    try:
        with closing(file.another_reader()) as source, closing(sqlite3.connect(name)) as target:
            source.backup(target, pages=_ALL_PAGES)
            # One file without a log beside it, so that it can be copied and read as it is.
            target.execute("PRAGMA journal_mode = DELETE")
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, sqlite3.Error):
            raise Unavailable(f"{file.path}: the backup failed: {error}") from error
        raise
    return Path(name)


def _discard(task: asyncio.Task[Path]) -> None:
    """Remove a copy that no caller waits for any more."""
    if not task.cancelled() and task.exception() is None:
        task.result().unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove copies of a process that was killed while it made one."""
    for left in path.parent.glob(f"{path.name}{_MARK}*"):
        left.unlink(missing_ok=True)
