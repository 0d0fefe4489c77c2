"""What a writer knows of its object before anybody reads it: how its own version shows it.

The next read need not ask a webhook again, and the bytes are made once, for it and for the answer.
Knows neither schemas nor how a view is made.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.server.registry.stored.entry import CacheEntry
from instar.wire.conversion.caching import SharedConverter


class WrittenView:
    """``written_view(entry)`` when the write has its revision, ``written_view.view(entry)`` for the answer."""

    __slots__ = ("_api_version", "_made", "_of_revision", "_shared")

    def __init__(
        self,
        of_revision: Callable[[int], bytes],
        api_version: str,
        shared: SharedConverter | None,
    ) -> None:
        """Without ``shared`` nothing is remembered."""
        self._of_revision, self._api_version, self._shared = of_revision, api_version, shared
        self._made = (0, b"")

    def __call__(self, entry: CacheEntry) -> None:
        if self._shared is not None:
            key = (entry.suffix, entry.revision)
            self._shared.remember(key, self._api_version, self.view(entry))

    def view(self, entry: CacheEntry) -> bytes:
        if self._made[0] != entry.revision:
            self._made = entry.revision, self._of_revision(entry.revision)
        return self._made[1]
