"""Backup files: written piece by piece, checked, and only then put in place.

Called by ``instar storage backup`` and ``instar storage restore``. A backup is a SQLite file of
instar, or a snapshot of etcd, which ends with the SHA-256 of what is before it. A failure leaves
nothing behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from instar.base.plurals import counted
from instar.wire.storage.store import UnusableStore
from instar.wire.storage.verify import IsSound, verify_file

_CHECKSUM = hashlib.sha256().digest_size
_SECTOR = 512
"""Pages of etcd's file are multiples of it, so that the rest tells whether a checksum is there."""


class DamagedBackup(Exception):
    """The file is no complete backup; the text says what is wrong."""


@contextlib.contextmanager
def placed(target: Path, *, replace: bool) -> Iterator[tuple[BinaryIO, Path]]:
    """Yield a new file beside ``target`` and its path; at the end of the block it becomes
    ``target``. Raises ``FileExistsError`` unless ``replace``."""
    if target.exists() and not replace:
        raise FileExistsError(f"{target} exists already; --force replaces it")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, path
            file.flush()
            os.fsync(file.fileno())
        path.replace(target)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def check_sqlite(path: Path, is_sound: IsSound) -> str:
    """Read every page and value; return what the file holds. Raises ``DamagedBackup``."""
    found = verify_file(str(path), is_sound)
    if found.problems:
        more = f" and {len(found.problems) - 1} more" if len(found.problems) > 1 else ""
        raise DamagedBackup(f"the backup is damaged: {found.problems[0]}{more}")
    return f"{counted(found.records, 'record')}, {counted(found.bytes, 'byte')}"


def check_etcd(path: Path) -> str:
    """Compare etcd's checksum; return what the file holds. Raises ``DamagedBackup``."""
    size = path.stat().st_size
    if size <= _CHECKSUM or size % _SECTOR != _CHECKSUM:
        raise DamagedBackup("the snapshot is incomplete: it does not end with etcd's checksum")
    left, digest = size - _CHECKSUM, hashlib.sha256()
    with open(path, "rb") as file:
        while left:
            piece = file.read(min(left, 1 << 20))
            digest.update(piece)
            left -= len(piece)
        if file.read() != digest.digest():
            raise DamagedBackup("the snapshot is damaged: etcd's checksum does not match")
    return counted(size, "byte")


def restore_sqlite(backup: Path, target: Path, is_sound: IsSound) -> str:
    """Check the backup and put a copy of it at ``target``, which must not exist."""
    for left in (target, *(target.with_name(target.name + end) for end in ("-wal", "-shm"))):
        if left.exists():
            raise UnusableStore(
                f"{left} exists already; stop its server and move it away, then restore"
            )
    told = check_sqlite(backup, is_sound)
    with placed(target, replace=False) as (file, path), open(backup, "rb") as source:
        shutil.copyfileobj(source, file)
        file.flush()
        check_sqlite(path, is_sound)
    return told
