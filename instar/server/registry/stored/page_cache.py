"""Cache of list pages: keeps the bytes of a page that is requested again while nothing changed.

``verbs/read.py`` asks it for unfiltered lists. When controllers start together, or a client polls,
the same page is requested many times in a row, and collecting its objects from memory is the
largest part of the work. A page is kept when it is requested a second time; a write to its
collection makes it invalid. The cache is bounded and evicts the least recently used page.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.base.weighted_lru import WeightedLru
from instar.server.registry.stored.views import Views

MOST_BYTES = 8 << 20
_LARGEST_PAGE = 1 << 20
"""Bytes; a larger page is not kept."""
_REQUESTED_BYTES = 64 << 10
"""Size of the record of pages that were requested once; the oldest are forgotten."""
_KEY_BYTES = 100


class PageKey(NamedTuple):
    """Identifies a page: which objects, at which version of which ``Serving``. It holds no schema,
    which would otherwise stay in memory as long as the page."""

    serving: object
    """``Serving.mark``."""
    version: str
    below: str
    first: str
    limit: int


class CachedPage(NamedTuple):
    """A page with the key of its last object and the number of objects behind it."""

    views: Views
    last: str
    remaining: int


class PageCache:
    """Bounded cache of pages by key and collection state."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._kept: WeightedLru[PageKey, tuple[object, CachedPage]] = WeightedLru(most)
        self._asked: WeightedLru[PageKey, object] = WeightedLru(_REQUESTED_BYTES)

    @property
    def weight(self) -> int:
        return self._kept.weight

    def find(self, key: PageKey, state: object) -> CachedPage | None:
        """Return the page if its collection is still in this state."""
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] is state:
            return found[1]
        self._kept.forget(key)
        return None

    def add(self, key: PageKey, state: object, page: CachedPage) -> None:
        """Keep a page that was made for the second time in this state; note one that was made
        first."""
        if not page.views.lasting or page.views.size > _LARGEST_PAGE:
            return
        weight = (
            _KEY_BYTES + len(key.below) + len(key.first)
        )  # a client's continue token may be long
        if self._asked.get(key) is not state:
            self._asked.put(key, state, weight)
            return
        page.views.keep()
        # Counts the objects' bytes, too: they may be replaced in the cache while the page is kept.
        self._kept.put(key, (state, page), weight + 2 * page.views.size)
