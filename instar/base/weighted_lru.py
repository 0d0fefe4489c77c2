"""LRU cache bounded by the total weight of its entries instead of their number.

Used for results that a client can make large (compiled rules and patterns, OpenAPI documents, list
pages), where the entry count of ``functools.lru_cache`` would be no bound. Threads may share one
cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class WeightedLru(Generic[K, V]):
    """Least-recently-used cache that is bounded by the sum of its values' weights."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.weight = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, weight: int) -> V:
        """Store and return the value, replacing an old one. A value heavier than the whole cache is
        not kept."""
        with self._lock:
            self._drop(key)
            if weight <= self._most:
                self._entries[key] = (value, weight)
                self.weight += weight
            while self.weight > self._most:
                _, (_, lost) = self._entries.popitem(last=False)
                self.weight -= lost
        return value

    def forget(self, key: K) -> None:
        with self._lock:
            self._drop(key)

    def _drop(self, key: K) -> None:
        lost = self._entries.pop(key, None)
        if lost is not None:
            self.weight -= lost[1]
