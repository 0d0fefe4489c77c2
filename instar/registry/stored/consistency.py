"""Whether the watch cache shows what the store holds: looked at every few minutes.

Every read is answered from the cache, so a cache that has gone astray would be believed for ever.
Both are compared at one revision; what changes meanwhile is left for the next time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from instar.metrics import Counter
from instar.registry.stored.backend import Backend
from instar.registry.stored.entry import Entry
from instar.storage.keys import collection_of, in_layout
from instar.storage.store import Record, StoreError

log = logging.getLogger(__name__)
EVERY_SECONDS = 300.0
METRIC = "instar_cache_consistency_checks_total"
_PAGE = 50
"""Records compared at once: each may be as large as a request."""
_SHOWN = 5


class Consistency:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.checks = Counter(METRIC, "Comparisons of the cache with the store.", ("result",))
        for result in ("ok", "different", "failed"):
            self.checks.add((result,), 0)
        self.differences: list[str] = []
        """Keys that differed in the last check."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            await self.check()

    async def check(self) -> bool:
        try:
            self.differences = await self._compared()
        except StoreError as error:
            self.checks.add(("failed",))
            log.warning("the cache could not be compared with the store: %s", error)
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
        seen: set[str] = set()
        found: list[str] = []
        while True:
            page = await self._backend.store.range("", start=start, limit=_PAGE, revision=revision)
            for record in page.records:
                if in_layout(record.key):
                    seen.add(record.key)
                    if self._differs(record, revision):
                        found.append(record.key)
            if not page.more or not page.records:
                break
            start = page.records[-1].key + "\0"
            await asyncio.sleep(0)
        found += [key for key in self._cached(revision) if key not in seen]
        return found

    def _differs(self, record: Record, revision: int) -> bool:
        collection = self._backend.cache.collection(collection_of(record.key))
        entry = collection.entries.get(record.key[len(collection.prefix) :])
        if entry is None or entry.revision > revision:
            # Deleted or changed since: only what was there all the time can be compared.
            return entry is None and self._backend.revision == revision
        return entry.revision != record.revision or entry.stored() != record.value.rstrip(b"\n")

    def _cached(self, revision: int) -> Iterable[str]:
        for collection in self._backend.cache.collections():
            entries: dict[str, Entry] = dict(collection.entries)
            for suffix, entry in entries.items():
                if entry.revision <= revision:
                    yield collection.prefix + suffix
