"""View of a written object at the writer's version, kept for the response and the next read.

``verbs/commit.py`` and ``verbs/delete.py`` get one from ``codec.py`` where a webhook had to convert
the object: the next read needs no webhook, and the bytes are made once.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.server.registry.stored.entry import CacheEntry
from instar.wire.conversion.caching import SharedConverter


class WrittenView:
    """``view(entry)`` is the response; calling the object caches the view once the write has its
    revision."""

    __slots__ = ("_api_version", "_made", "_of_revision", "_shared")

    def __init__(
        self,
        of_revision: Callable[[int], bytes],
        api_version: str,
        shared: SharedConverter | None,
    ) -> None:
        """Without ``shared`` nothing is cached."""
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
