"""The store's current revision in memory shared by all processes of a server.

Written by ``store_server.py``, read by ``worker_store.py``. A read through any worker must see a
write acknowledged through another: the worker compares this revision with that of its cache and
waits only if the cache is behind.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

_WORD = 8


class SharedRevision:
    """One machine word in a file that all processes map; one process writes it."""

    def __init__(self, path: Path, *, writing: bool) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC if writing else os.O_RDONLY | os.O_CLOEXEC
        file = os.open(path, flags, 0o600)
        try:
            if writing:
                os.ftruncate(file, mmap.PAGESIZE)
            access = mmap.ACCESS_WRITE if writing else mmap.ACCESS_READ
            self._map = mmap.mmap(file, mmap.PAGESIZE, access=access)
        finally:
            os.close(file)
        # Cast to one word, so that reads and writes are atomic.
        self._words = memoryview(self._map)[:_WORD].cast("Q")

    def get(self) -> int:
        return self._words[0]

    def set(self, revision: int) -> None:
        self._words[0] = revision

    def close(self) -> None:
        self._words.release()
        self._map.close()
