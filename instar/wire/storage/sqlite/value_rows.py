"""Reads values from the SQLite file by location (``--values disk``); a location is a row id.

Created by ``store.py``. The reader has its own connection, because reads of the change history keep
the store's read connection busy for longer, and a lock, because large responses are encoded in
threads. Values are returned as stored; the encrypting store decrypts them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from threading import Lock

from instar.wire.storage.store import Record, StoreError, Unavailable
from instar.wire.storage.value_reader import ValueGone

_ROW = "SELECT key, value FROM log WHERE revision = ?"


class SqliteValues:
    """The ``Values`` of a SQLite store."""

    def __init__(self, name: str, connection: sqlite3.Connection) -> None:
        self._name = name
        self._cursor = connection.cursor()
        self._lock = Lock()

    def keep(self, record: Record) -> int:
        return record.revision

    def read(self, place: int) -> bytes:
        return self.row(place)[1]

    def read_many(self, places: Sequence[int]) -> list[bytes]:
        return [value for _, value in self.rows(places)]

    def row(self, place: int) -> tuple[str, bytes]:
        """Return key and value: an encrypted value is bound to its key."""
        try:
            with self._lock:
                return self._read_row(place)
        except sqlite3.OperationalError as error:
            raise Unavailable(f"{self._name}: {error}") from error
        except sqlite3.Error as error:
            raise StoreError(f"{self._name}: {error}") from error

    def rows(self, places: Sequence[int]) -> list[tuple[str, bytes]]:
        try:
            with self._lock:
                self._cursor.execute("BEGIN")
                try:
                    return [self._read_row(place) for place in places]
                finally:
                    self._cursor.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise Unavailable(f"{self._name}: {error}") from error
        except sqlite3.Error as error:
            raise StoreError(f"{self._name}: {error}") from error

    def _read_row(self, place: int) -> tuple[str, bytes]:
        row: tuple[str, bytes | None] | None = self._cursor.execute(_ROW, (place,)).fetchone()
        if row is None or row[1] is None:
            raise ValueGone(place)
        return row[0], row[1]
