"""Temporary folders of a process, removed at its end; those of killed processes are removed later.

``lifecycle/lifetime.py`` keeps certificates in one if no folder is given; ``instar serve
--workers`` keeps the sockets between its processes in one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "instar-"
_LOCK = ".lock-of-owner"
_YOUNG_SECONDS = 60.0
"""A folder younger than this may not be locked yet by its new process, so it stays."""
_cleared: set[Path] = set()


@contextlib.contextmanager
def temporary_folder(kind: str = "") -> Iterator[Path]:
    """A folder that is removed at the end of the block."""
    among = Path(tempfile.gettempdir())
    if among not in _cleared:  # once per process is enough
        _cleared.add(among)
        clear_abandoned(among)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX + kind))
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def clear_abandoned(among: Path) -> None:
    """Remove folders of processes that have ended: the lock of a folder ends with its process."""
    with contextlib.suppress(OSError):
        for folder in among.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                if _is_abandoned(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    found = folder.lstat()
    if folder.is_symlink() or not folder.is_dir() or found.st_uid != os.getuid():
        return False
    if time.time() - found.st_mtime < _YOUNG_SECONDS:
        return False
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
