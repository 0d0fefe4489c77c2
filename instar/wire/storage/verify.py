"""Verifies a store: SQLite's integrity check of a file, then every value as JSON.

Called by ``instar storage verify``. SQLite keeps no checksums, so a page damaged in place may pass
its check and hold garbage. The file is opened read-only, and only while no server uses it; a
running server compares its memory with the file itself. Values in etcd or PostgreSQL are read
through the client of that store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from instar.wire.storage.copy import all_records
from instar.wire.storage.sqlite.file import in_use, is_ours
from instar.wire.storage.store import SelfCheckingStore, Store, UnusableStore

IsSound = Callable[[str, bytes], bool]


class Verified(NamedTuple):
    """Numbers of checked records and bytes, and the problems found."""

    records: int
    bytes: int
    problems: list[str]


def verify_file(path: str, is_sound: IsSound) -> Verified:
    """Check every row; ``is_sound`` checks a key's value. Raises ``UnusableStore`` for
    other files."""
    file = Path(path).resolve()
    if not file.exists() or not is_ours(file):
        raise UnusableStore(f"{file}: not a store file of instar")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as connection:
            return _verify_rows(connection, is_sound)
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise in_use(file) from error
        raise UnusableStore(f"{file}: cannot be read: {error}") from error


async def verify_store(store: Store, is_sound: IsSound) -> Verified:
    """Read every value of a store, and what the store can check itself. Raises ``StoreError``."""
    problems = await store.problems() if isinstance(store, SelfCheckingStore) else []
    records = size = 0
    async for record in all_records(store, (await store.range("", limit=1)).revision):
        records += 1
        size += len(record.value)
        if not is_sound(record.key, record.value):
            problems.append(f"revision {record.revision}: {record.key}: the value is damaged")
    return Verified(records, size, problems)


def _verify_rows(connection: sqlite3.Connection, is_sound: IsSound) -> Verified:
    problems = [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
    records = size = 0
    (last,) = connection.execute("SELECT coalesce(max(revision), 0) FROM log").fetchone()
    revision = 0
    while revision < last:
        row, revision = _read_next_row(connection, revision, problems)
        if row is not None:
            key, value = row
            records += 1
            size += len(value or b"")
            if value is not None and not is_sound(key, value):
                problems.append(f"revision {revision}: {key}: the value is damaged")
    return Verified(records, size, problems)


def _read_next_row(
    connection: sqlite3.Connection, after: int, problems: list[str]
) -> tuple[tuple[str, bytes | None] | None, int]:
    """Read one row at a time, so that an unreadable page loses only its own rows."""
    (revision,) = connection.execute(
        "SELECT min(revision) FROM log WHERE revision > ?", (after,)
    ).fetchone()
    try:
        row = connection.execute(
            "SELECT key, value FROM log WHERE revision = ?", (revision,)
        ).fetchone()
    except sqlite3.DatabaseError as error:
        problems.append(f"revision {revision}: {error}")
        return None, revision
    return row, revision
