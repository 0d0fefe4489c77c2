"""A bounded memory of finished bytes: least recently used out first, and nothing kept too long.

One for the whole server, so that the bound is one number however many CRDs there are. A scope
is whatever makes entries worthless together (one generation of one CRD). Knows no conversion.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable

_ENTRY_OVERHEAD = 400
"""Rough bytes of key, tuple and dictionary slot: many tiny entries must not count as nothing."""


class Memo:
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
        self._entries: OrderedDict[tuple[Hashable, Hashable], tuple[bytes, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, scope: Hashable, key: Hashable) -> bytes | None:
        return self.get_many(scope, (key,)).get(key)

    def get_many(self, scope: Hashable, keys: Iterable[Hashable]) -> dict[Hashable, bytes]:
        """What is known of these; one look at the clock for all."""
        oldest = self._clock() - self._max_age
        entries, found = self._entries, {}
        for key in keys:
            place = (scope, key)
            entry = entries.get(place)
            if entry is None:
                continue
            if entry[1] < oldest:
                self._remove(place)
            else:
                entries.move_to_end(place)
                found[key] = entry[0]
        return found

    @property
    def crowded(self) -> bool:
        """Whether there is no room for what nobody has asked for yet."""
        return self.bytes > self._max_bytes // 4 * 3

    def holds(self, scope: Hashable, key: Hashable) -> bool:
        """Whether it is there, without counting as a use of it."""
        return (scope, key) in self._entries

    def put(
        self, scope: Hashable, key: Hashable, data: bytes, *, first_to_go: bool = False
    ) -> None:
        """``first_to_go``: until somebody asks for it."""
        if (scope, key) in self._entries:
            self._remove((scope, key))
        cost = len(data) + _ENTRY_OVERHEAD
        if cost > self._max_bytes:
            return
        self._entries[scope, key] = (data, self._clock())
        if first_to_go:
            self._entries.move_to_end((scope, key), last=False)
        self.bytes += cost
        while self.bytes > self._max_bytes:
            self._remove(next(iter(self._entries)))

    def drop(self, scope: Hashable) -> None:
        """Forget everything of a scope."""
        for entry in [entry for entry in self._entries if entry[0] == scope]:
            self._remove(entry)

    def _remove(self, entry: tuple[Hashable, Hashable]) -> None:
        data, _ = self._entries.pop(entry)
        self.bytes -= len(data) + _ENTRY_OVERHEAD
