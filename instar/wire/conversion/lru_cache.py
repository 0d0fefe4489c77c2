"""LRU cache of converted objects as bytes, bounded by size and age.

The whole server has one cache, used by ``caching.py``. A scope groups entries that become invalid
together (one generation of one CRD). Prefetched or outdated entries are kept apart and evicted
first.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable

_ENTRY_OVERHEAD = 400
"""Approximate bytes of key, tuple and dict slot, so that many tiny entries count."""


class ConversionCache:
    """Cache of converted objects, by scope (a generation of a CRD) and key."""

    def __init__(
        self,
        *,
        max_bytes: int = 128 * 1024 * 1024,
        max_age: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.bytes = 0
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock
        self._used = _EvictionQueue()
        self._spare = _EvictionQueue()
        """Entries not requested yet, or outdated; the oldest is evicted first."""

    def __len__(self) -> int:
        return len(self._used.entries) + len(self._spare.entries)

    def get(self, scope: Hashable, key: Hashable) -> bytes | None:
        return self.get_many(scope, (key,)).get(key)

    def get_many(self, scope: Hashable, keys: Iterable[Hashable]) -> dict[Hashable, bytes]:
        """Return the cached entries of the keys; reads the clock once for all."""
        oldest = self._clock() - self._max_age
        used, found = self._used.entries, {}
        for key in keys:
            place = (scope, key)
            entry = used.get(place)
            if entry is None:
                entry = self._spare.entries.get(place)
                if entry is None:
                    continue
                self._used.add(place, self._spare.take(place))
            if entry[1] < oldest:
                self._remove(self._used, place)
            else:
                used.move_to_end(place)
                found[key] = entry[0]
        return found

    @property
    def crowded(self) -> bool:
        """Return whether there is no space for entries that no client has requested yet."""
        return self._used.bytes > self._max_bytes // 4 * 3

    def holds(self, scope: Hashable, key: Hashable) -> bool:
        """Return whether the key is cached, without counting as a use."""
        return (scope, key) in self._used.entries or (scope, key) in self._spare.entries

    def put(
        self, scope: Hashable, key: Hashable, data: bytes, *, first_to_go: bool = False
    ) -> None:
        """Add an entry; with ``first_to_go`` it is evicted first until it is requested."""
        place = (scope, key)
        for shelf in (self._used, self._spare):
            if place in shelf.entries:
                self._remove(shelf, place)
        if _cost(data) > self._max_bytes:
            return
        shelf = self._spare if first_to_go else self._used
        shelf.add(place, (data, self._clock()))
        self.bytes += _cost(data)
        while self.bytes > self._max_bytes:
            emptied = self._spare if self._spare.entries else self._used
            self._remove(emptied, next(iter(emptied.entries)))

    def outdate(self, scope: Hashable, key: Hashable) -> None:
        """Mark an entry for early eviction, because it is rarely requested again."""
        place = (scope, key)
        if place in self._used.entries:
            self._spare.add(place, self._used.take(place))
        if place in self._spare.entries:
            self._spare.entries.move_to_end(place, last=False)

    def drop(self, scope: Hashable) -> None:
        """Drop all entries of a scope."""
        for shelf in (self._used, self._spare):
            for place in [place for place in shelf.entries if place[0] == scope]:
                self._remove(shelf, place)

    def _remove(self, shelf: _EvictionQueue, place: _Place) -> None:
        data, _ = shelf.take(place)
        self.bytes -= _cost(data)


_Place = tuple[Hashable, Hashable]
"""Scope and key."""
_Entry = tuple[bytes, float]
"""The bytes, and when they were added."""


class _EvictionQueue:
    """Entries in eviction order, and their total size."""

    __slots__ = ("bytes", "entries")

    def __init__(self) -> None:
        self.bytes = 0
        self.entries: OrderedDict[_Place, _Entry] = OrderedDict()

    def add(self, place: _Place, entry: _Entry) -> None:
        self.entries[place] = entry
        self.bytes += _cost(entry[0])

    def take(self, place: _Place) -> _Entry:
        entry = self.entries.pop(place)
        self.bytes -= _cost(entry[0])
        return entry


def _cost(data: bytes) -> int:
    return len(data) + _ENTRY_OVERHEAD
