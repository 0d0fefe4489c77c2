"""Which versions of a resource somebody reads, as far as the last minutes tell.

Kept by the codec, which sees every read, for ``conversion_prefetch.py``, which does their work in
advance. Knows only names of versions.
"""

from __future__ import annotations

import time
from collections.abc import Callable

REMEMBERED = 600.0
"""Seconds after its last read in which a version counts as read."""


class VersionReads:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._born = clock()
        self._last: dict[str, float] = {}

    def note(self, version: str) -> None:
        self._last[version] = self._clock()

    def is_recently_read(self, version: str) -> bool:
        """A resource that is new, or newly shaped, may be read at any version: nobody knows."""
        return self._last.get(version, self._born) > self._clock() - REMEMBERED
