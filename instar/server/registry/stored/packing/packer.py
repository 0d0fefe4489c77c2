"""Packer: replaces cache entries that were not written lately by packed ones, in the background.

``stored/backend.py`` has one unless objects are on disk or shared with workers. For each large
collection it trains a dictionary in a thread, packs what has been written since its last round, and
trains anew when later values pack worse. While a very large collection is loaded, ``of_loaded``
packs each entry at once. Small collections, and values that do not shrink, stay as they are.
``packed_entry.py`` reads packed entries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from time import monotonic

from instar.base import offload
from instar.base.metrics import Counter, Measured, Metric
from instar.base.supervision import note_progress, report_failure, resting
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry, ingest
from instar.server.registry.stored.packing.collection_packing import (
    CollectionPacking,
    Packable,
    packed_values,
    trained,
)
from instar.server.registry.stored.packing.packed_entry import HotValues, PackedEntry
from instar.wire.storage.store import Compacted, Local, Record
from instar.wire.storage.watchcache.cache import Cache
from instar.wire.storage.watchcache.collection import Change, Collection, CollectionReloaded

log = logging.getLogger(__name__)
EVERY_SECONDS = 10.0
_BATCH_BYTES = 256 << 10
_BATCH_ENTRIES = 500
"""Bytes and entries packed by one call in the thread."""
_CHANGES_PER_TURN = 2_000
_SAMPLED = 1_600
"""Entries that samples are taken from."""

Objects = Collection[CacheEntry]
Replaced = dict[int, tuple[CacheEntry, CacheEntry]]
"""Old and new entry by the ``id`` of the old one, which stays referenced meanwhile."""


class Packer:
    """Packs the entries of one watch cache."""

    def __init__(self) -> None:
        self._hot = HotValues()
        self._packings: dict[str, CollectionPacking] = {}
        self._loaded: asyncio.Event | None = None
        """Set when a collection that is being loaded has enough samples; None before ``run``."""
        self._expected: Mapping[str, int] = {}
        """Number of writes of each collection that is being loaded."""
        self._swept = monotonic()
        self._before = Counter(
            "instar_packing_value_bytes_total", "Bytes of values that were packed.", ("resource",)
        )
        self._after = Counter(
            "instar_packing_packed_bytes_total", "Bytes that they were packed to.", ("resource",)
        )
        self._trainings = Counter(
            "instar_packing_trainings_total", "Dictionaries trained.", ("resource",)
        )

    # --- while a collection is loaded -----------------------------------------------------

    def of_loaded(self, record: Record, suffix: str) -> CacheEntry:
        """Return the entry of a record of a collection that is being loaded."""
        held = ingest(record, suffix)
        if self._loaded is None:
            return held
        prefix = record.key[: len(record.key) - len(suffix)]
        packing = self._packings.get(prefix)
        if packing is None:
            packing = self._packings[prefix] = CollectionPacking(self._hot)
        if packing.dictionary is not None:
            return packing.packed_now(held)
        if packing.collects(held, self._expected.get(prefix, 0)):
            self._loaded.set()
        return held

    # --- in the background ----------------------------------------------------------------

    async def run(self, cache: Cache[CacheEntry]) -> None:
        """Pack periodically, and train at once for collections that are being loaded."""
        self._loaded = asyncio.Event()
        if isinstance(cache.store, Local):
            self._expected = cache.store.counts()
        try:
            await self._keep_packing(cache, self._loaded)
        except ImportError as error:
            log.warning("values are not packed in memory, a library is missing: %s", error)
        finally:
            self._loaded = None

    async def _keep_packing(self, cache: Cache[CacheEntry], loaded: asyncio.Event) -> None:
        while True:
            with resting(), suppress(TimeoutError):
                async with asyncio.timeout(EVERY_SECONDS):
                    await loaded.wait()
            loaded.clear()
            await self._train_loaded()
            if monotonic() >= self._swept + EVERY_SECONDS:
                await self.sweep(cache)
                self._swept = monotonic()

    async def _train_loaded(self) -> None:
        for prefix, packing in list(self._packings.items()):
            if packing.has_samples(self._expected.get(prefix, 0)):
                await self._train(prefix, packing, packing.samples, 1)

    async def sweep(self, cache: Cache[CacheEntry]) -> None:
        """Pack what was written since the last call. A collection that cannot be packed does not
        keep the others from it."""
        if cache.pending:
            return
        known = {objects.prefix: objects for objects in cache.collections()}
        for prefix in self._packings.keys() - known.keys():
            self._forget(prefix)
        for prefix, objects in known.items():
            packing = self._packings.get(prefix)
            if packing is not None and packing.state is objects.state:
                continue
            try:
                await self._sweep(objects, packing or CollectionPacking(self._hot))
            except CollectionReloaded:
                continue  # the next round packs what was read anew
            except ImportError:
                raise
            except Exception as error:
                report_failure("packing", error, prefix)

    async def _sweep(self, objects: Objects, packing: CollectionPacking) -> None:
        state, revision = objects.state, objects.latest_revision
        packing.samples = []
        count = len(objects.entries)
        if packing.has_shrunk(count):
            self._forget(objects.prefix)
            return
        if packing.dictionary is None:
            if not packing.has_enough(count):
                return
            samples = _samples(objects)
            average = sum(map(len, samples)) // max(1, len(samples))
            if not packing.is_large(count * average):
                return
            self._packings[objects.prefix] = packing
            await self._train(objects.prefix, packing, samples, count)
        elif packing.is_outdated:
            await self._train(objects.prefix, packing, _samples(objects), count)
        if packing.dictionary is not None:
            await self._pack(objects, packing)
            packing.dictionary.trim()
            packing.end_round()
        packing.state, packing.packed_to = state, revision

    def _forget(self, prefix: str) -> None:
        """Drop a dictionary, which stays in memory as long as values that were packed by it."""
        if self._packings.pop(prefix, None) is not None:
            self._hot.clear()

    async def _train(
        self, prefix: str, packing: CollectionPacking, samples: list[bytes], count: int
    ) -> None:
        made = await offload.run_in_thread(trained, list(samples), packing.dictionary)
        self._trainings.add((prefix.rstrip("/"),))
        if packing.settle(made, count):
            packing.entries = None  # pack everything with the new dictionary

    async def _pack(self, objects: Objects, packing: CollectionPacking) -> None:
        """Pack the entries changed since the last round; all after a training or a reload."""
        recent, since = None, packing.packed_to
        if packing.entries is objects.entries:
            with suppress(Compacted):
                recent = objects.changes_after(since)
        if recent is not None:
            await self._pack_changes(objects, packing, since, recent)
            return
        entries = packing.entries = objects.entries
        await self._pack_changes(objects, packing, 0, list(objects.window))
        async for part in objects.slices():
            await self._pack_part(objects, packing, (entry for _, entry in part))
        if objects.entries is not entries:
            raise CollectionReloaded

    async def _pack_changes(
        self,
        objects: Objects,
        packing: CollectionPacking,
        since: int,
        changes: Sequence[Change[CacheEntry]],
    ) -> None:
        """Pack what the window of changes refers to."""
        replaced: Replaced = {}
        for start in range(0, len(changes), _CHANGES_PER_TURN):
            part = changes[start : start + _CHANGES_PER_TURN]
            entries = (entry for each in part for entry in (each.new, each.old) if entry)
            await self._pack_part(objects, packing, entries, replaced)

        def newer(entry: CacheEntry) -> CacheEntry:
            found = replaced.get(id(entry))
            return entry if found is None else found[1]

        breaks = offload.Breaks()
        while replaced and (since := objects.replace_in_window(since, _CHANGES_PER_TURN, newer)):
            await breaks.between()

    async def _pack_part(
        self,
        objects: Objects,
        packing: CollectionPacking,
        entries: Iterable[CacheEntry],
        replaced: Replaced | None = None,
    ) -> None:
        """Pack the entries that are not packed by the present dictionary. ``replaced`` gets them
        all, with those that are not in the collection any more."""
        resource = (objects.prefix.rstrip("/"),)
        for batch in _batches(entries, packing, replaced or {}):
            note_progress()
            dictionary = packing.dictionary
            if dictionary is None:
                return
            made = await offload.run_in_thread(packed_values, dictionary, batch)
            for entry, value in zip(batch, made, strict=True):
                packed = None if value is None else packing.packed_entry(entry, value)
                if packed is None or value is None:
                    continue
                self._before.add(resource, value.size)
                self._after.add(resource, len(value.frame))
                if replaced is not None:
                    replaced[id(entry)] = (entry, packed)
                if objects.entries.get(entry.suffix) is entry:
                    objects.entries[entry.suffix] = packed

    def metrics(self) -> tuple[Metric, ...]:
        help = "Dictionaries in use for packed values."
        name = "instar_packing_dictionaries"
        return self._before, self._after, self._trainings, Measured(name, help, (), self._measured)

    def _measured(self) -> Iterator[tuple[tuple[()], float]]:
        yield (), sum(each.dictionary is not None for each in self._packings.values())


def _samples(objects: Objects) -> list[bytes]:
    """Return the views of entries that are spread over a collection, the latest among them."""
    count = len(objects.keys)
    step = max(1, count // _SAMPLED)
    entries = [objects.entries[objects.keys[at]] for at in range(0, count, step)][:_SAMPLED]
    recent = [each.new for each, _ in zip(reversed(objects.window), range(_SAMPLED), strict=False)]
    mixed = (one for pair in zip_longest(entries, recent) for one in pair if one is not None)
    chosen = {(entry.suffix, entry.revision): entry for entry in mixed}
    views = (_view_of(entry) for entry in chosen.values())
    return [view for view in islice(views, _SAMPLED) if view]


def _view_of(entry: CacheEntry) -> bytes:
    if isinstance(entry, InMemoryEntry):
        return entry.ready
    return entry.fresh().ready if isinstance(entry, PackedEntry) else b""


def _batches(
    entries: Iterable[CacheEntry], packing: CollectionPacking, replaced: Replaced
) -> Iterator[list[Packable]]:
    """Yield the entries that are not packed by the present dictionary, some at a time."""
    batch, size = list[Packable](), 0
    for entry in entries:
        if id(entry) in replaced:
            continue
        if isinstance(entry, PackedEntry):
            if entry.kind.dictionary is packing.dictionary:
                continue
        elif not isinstance(entry, InMemoryEntry):
            continue
        batch.append(entry)
        size += entry.size
        if size > _BATCH_BYTES or len(batch) >= _BATCH_ENTRIES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
