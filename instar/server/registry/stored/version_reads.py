"""Records which versions of a resource were read in the last minutes.

``codec.py`` notes every read; ``controllers/conversion_prefetch.py`` converts new objects to these
versions in advance.
"""

from __future__ import annotations

import time
from collections.abc import Callable

REMEMBERED = 600.0
"""Seconds after its last read in which a version counts as read."""


class VersionReads:
    """The last read of each version of one resource."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._born = clock()
        self._last: dict[str, float] = {}

    def note(self, version: str) -> None:
        self._last[version] = self._clock()

    def is_recently_read(self, version: str) -> bool:
        """Return whether the version counts as read. Every version of a new or changed resource
        does at first."""
        return self._last.get(version, self._born) > self._clock() - REMEMBERED
