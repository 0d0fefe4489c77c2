"""Cache of parsed configuration objects (webhook configurations, policies, priority classes).

Used by admission plugins. Objects are parsed once per revision when they change, not on each
request; if no object is stored, a check costs a look-up in an empty dict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from instar.base.json_values import Object
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
T = TypeVar("T")


class ConfigCache(Generic[T]):
    """Objects of one kind, each parsed by ``read`` once per revision."""

    def __init__(
        self, backend: Backend, group: str, plural: str, read: Callable[[Object], T]
    ) -> None:
        self.objects = backend.collection(collection_prefix(group, plural))
        self._read = read
        self._known: dict[str, tuple[int, T]] = {}
        self._plural = plural
        self._sorted: tuple[T, ...] | None = None
        self.objects.listeners.append(self._changed)
        backend.cache.on_reset(self._reset)

    def __bool__(self) -> bool:
        """Return whether any object is stored."""
        return bool(self.objects.entries)

    def current(self) -> tuple[T, ...]:
        """Return the parsed objects in the order of their names."""
        if self._sorted is None:
            self._sorted = tuple(self._made())
        return self._sorted

    def get(self, name: str) -> T | None:
        self.current()
        known = self._known.get(name)
        return None if known is None else known[1]

    def _made(self) -> list[T]:
        entries = self.objects.entries
        for gone in self._known.keys() - entries.keys():
            del self._known[gone]
        return [found for name in sorted(entries) if (found := self._of(entries[name])) is not None]

    def _of(self, entry: CacheEntry) -> T | None:
        """Parse an entry; one that cannot be parsed (written by another program) counts as
        absent."""
        known = self._known.get(entry.suffix)
        if known is not None and known[0] == entry.revision:
            return known[1]
        self._known.pop(entry.suffix, None)
        try:
            made = self._read(entry.decode())
        except Exception:
            log.exception("the stored %s %s cannot be used", self._plural, entry.suffix)
            return None
        self._known[entry.suffix] = entry.revision, made
        return made

    def _changed(self, change: Change[CacheEntry]) -> None:
        self._sorted = None

    def _reset(self) -> None:
        self._sorted = None
        self._known.clear()
