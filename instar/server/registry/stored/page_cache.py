"""Pages of lists that are asked for again while nothing has changed: put together once.

When controllers start together, or a client polls, the same page is asked for many times in a row.
Finding its objects takes longer than anything else that is done for it here, since each lies
somewhere else in memory. So the second time it is asked for, it is kept as it was written; any
write to its collection makes it worthless. What is kept is bounded, the longest unused goes first.
Knows no verbs.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.base.weighted_lru import Remembered
from instar.server.registry.stored.views import Views

MOST_BYTES = 8 << 20
_LARGEST = 1 << 20
_MOST_ASKED = 64 << 10
_KEY_BYTES = 100


class PageKey(NamedTuple):
    """Which objects, and what they are shown by: a CRD that changes makes another of it. Not the
    schemas themselves: they would stay as long as the page, whatever became of their CRD."""

    serving: object
    """``Serving.mark``."""
    version: str
    below: str
    first: str
    limit: int


class CachedPage(NamedTuple):
    views: Views
    last: str
    remaining: int


class Pages:
    def __init__(self, most: int = MOST_BYTES) -> None:
        self._kept: Remembered[PageKey, tuple[object, CachedPage]] = Remembered(most)
        self._asked: Remembered[PageKey, object] = Remembered(_MOST_ASKED)

    @property
    def weight(self) -> int:
        return self._kept.weight

    def find(self, key: PageKey, state: object) -> CachedPage | None:
        """The page, if its collection is still in this state."""
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] is state:
            return found[1]
        self._kept.forget(key)
        return None

    def add(self, key: PageKey, state: object, page: CachedPage) -> None:
        """Somebody was given this page. One who lists alone leaves nothing behind."""
        if not page.views.lasting or page.views.size > _LARGEST:
            return
        weight = _KEY_BYTES + len(key.below) + len(key.first)  # a client's token says how long
        if self._asked.get(key) is not state:
            self._asked.put(key, state, weight)
            return
        page.views.keep()
        # Its objects' own bytes, too: they may be written over while it is kept.
        self._kept.put(key, (state, page), weight + 2 * page.views.size)
