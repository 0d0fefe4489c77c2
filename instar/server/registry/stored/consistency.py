"""Periodic check that the watch cache holds what the store holds.

``server/lifecycle/composition.py`` starts it. Every read is answered from the cache, so a wrong
cache would stay unnoticed. Cache and store are compared at one revision; keys that change meanwhile
wait for the next check. The check reports differences by metric, log and ``/readyz``, and repairs
nothing.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic

from instar.base.metrics import Counter
from instar.base.supervision import note_progress, rest
from instar.server.registry.stored.backend import Backend, Objects
from instar.server.registry.stored.lazy_entry import LazyEntry
from instar.wire.storage.keys import collection_of, in_layout
from instar.wire.storage.store import Record, StoreError

log = logging.getLogger(__name__)
EVERY_SECONDS = 300.0
METRIC = "instar_cache_consistency_checks_total"
_PAGE = 50
"""Records compared per request to the store: each may be as large as a request body."""
_SHOWN = 5
_SHARE = 50
"""The pause after a check is at least this many times as long as the check took."""


class Consistency:
    """Compares a backend's cache with its store."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.checks = Counter(METRIC, "Comparisons of the cache with the store.", ("result",))
        for result in ("ok", "different", "failed"):
            self.checks.add((result,), 0)
        self.differences: list[str] = []
        """Keys that differed in the last check."""

    async def run(self) -> None:
        took = 0.0
        while True:
            await rest(max(EVERY_SECONDS, _SHARE * took))
            began = monotonic()
            await self.check()
            took = monotonic() - began

    async def check(self) -> bool:
        try:
            self.differences = await self._compared()
        except StoreError as error:
            self.checks.add(("failed",))
            log.warning("cannot compare the watch cache with the store, will retry: %s", error)
            return False
        self.checks.add(("different" if self.differences else "ok",))
        if self.differences:
            shown = ", ".join(self.differences[:_SHOWN])
            log.error(
                "the cache differs from the store in %d keys (%s); restart the server, and run "
                "instar storage verify on a file",
                *(len(self.differences), shown),
            )
        return not self.differences

    @property
    def trouble(self) -> str | None:
        count = len(self.differences)
        return f"the cache differs from the store in {count} keys" if count else None

    async def _compared(self) -> list[str]:
        revision, start = self._backend.revision, ""
        walk = _Walk(self._backend, revision)
        found: list[str] = []
        while True:
            page = await self._backend.store.range("", start=start, limit=_PAGE, revision=revision)
            for record in page.records:
                if in_layout(record.key):
                    found += walk.passed(record.key)
                    if self._differs(record, revision):
                        found.append(record.key)
            if not page.more or not page.records:
                break
            start = page.records[-1].key + "\0"
            note_progress()
            await asyncio.sleep(0)
        return found + walk.remaining_keys()

    def _differs(self, record: Record, revision: int) -> bool:
        collection = self._backend.cache.collection(collection_of(record.key))
        entry = collection.entries.get(record.key[len(collection.prefix) :])
        if entry is None or entry.revision > revision:
            # Deleted or changed since then: only what stayed the same can be compared.
            return entry is None and self._backend.revision == revision
        if entry.revision != record.revision or isinstance(entry, LazyEntry):
            return entry.revision != record.revision  # a lazy entry reads the same record
        return entry.stored() != record.value.rstrip(b"\n")


class _Walk:
    """Walks the cache's keys along with the store's, to find keys that only the cache has."""

    def __init__(self, backend: Backend, revision: int) -> None:
        self._cache, self._revision = backend.cache, revision
        self._last: dict[str, str] = {}

    def passed(self, key: str) -> list[str]:
        """Return the cache's keys between the last one of the same collection and this one."""
        prefix = collection_of(key)
        name = key[len(prefix) :]
        found = self._only(self._cache.collection(prefix), name)
        self._last[prefix] = name
        return found

    def remaining_keys(self) -> list[str]:
        """Return the cache's keys behind the last one of each collection, and those missing in its
        order."""
        found: list[str] = []
        for each in self._cache.collections():
            found += self._only(each, None)
            if len(each.entries) != len(each.keys):
                found += [each.prefix + name for name in each.entries if name not in each.keys]
        return found

    def _only(self, collection: Objects, until: str | None) -> list[str]:
        last, entries = self._last.get(collection.prefix), collection.entries
        between = collection.keys.irange(last, until, inclusive=(last is None, False))
        return [
            collection.prefix + name for name in between if entries[name].revision <= self._revision
        ]
