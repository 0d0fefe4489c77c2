"""Census: number of stored objects per API version of each custom resource.

Served as ``/instar/census`` and read by the migration controller. The numbers are exact, because
the cache sees every stored object: a collection is counted once, on first use, and each later
change adjusts the numbers. Built-in kinds are stored in one version only and not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Any

from instar.base import offload
from instar.base.metrics import Measured
from instar.kube.api.jsonpath_steps import Work
from instar.kube.api.names import by_priority
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.columns import TablePrinter
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.backend import Objects
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.watchcache.collection import Change

Counts = dict[str, int]
_UNREADABLE = "unreadable"
_AT_ONCE = 1_000


class ServerCensus:
    """Counts stored objects by version, from the watch cache."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._counters: dict[str, _Counter] = {}
        catalog.on_closed(self._forget)

    def of(self, resource: Resource) -> Counts:
        """Return objects per version, best version first; the storage version is always listed."""
        counter = self._counter(resource)
        while counter.goes_on():
            pass
        found = {resource.serving.storage.name: 0}
        for api_version, count in counter.counts.items():
            if count:
                found[api_version.rpartition("/")[2]] = count
        if len(found) == 1:
            return found
        return {version: found[version] for version in by_priority(found)}

    async def prepare(self, crd: str = "") -> None:
        """Count what was not counted yet, of one CRD or all, with pauses (a million objects take a
        second). Afterwards ``of`` answers at once."""
        found = self._catalog.custom(crd) if crd else None
        resources = self._catalog.customs() if found is None else [found]
        breaks = offload.Breaks()
        for resource in resources:
            await breaks.between()
            if resource.closed:
                continue
            counter = self._counter(resource)
            while counter.goes_on():
                await breaks.between()

    def _counter(self, resource: Resource) -> _Counter:
        objects = resource.objects
        counter = self._counters.get(objects.prefix)
        if counter is None or not counter.follows(objects):
            counter = self._counters[objects.prefix] = _Counter(objects)
        return counter

    def _forget(self, resource: Resource) -> None:
        counter = self._counters.pop(resource.objects.prefix, None)
        if counter is not None:
            counter.close()

    def of_crd(self, name: str) -> Counts:
        resource = self._catalog.custom(name)
        return {} if resource is None else self.of(resource)

    def document(self) -> dict[str, Any]:
        """Return the body of ``/instar/census``."""
        return {
            "exact": True,
            "crds": {
                resource.crd.name: {
                    "storageVersion": resource.serving.storage.name,
                    "storedVersions": list(resource.crd.stored_versions),
                    "objects": self.of(resource),
                }
                for resource in sorted(self._catalog.customs(), key=lambda item: item.crd.name)
            },
        }

    def counted(self) -> CensusCount:
        return CensusCount({item.crd.name: dict(self.of(item)) for item in self._catalog.customs()})

    def metric(self) -> Measured:
        return Measured(
            "instar_stored_objects",
            "Objects in the store, by CRD and stored version.",
            ("crd", "version"),
            self._measure,
        )

    def _measure(self) -> Iterable[tuple[tuple[str, str], int]]:
        for resource in self._catalog.customs():
            for version, count in self.of(resource).items():
                yield (resource.crd.name, version), count


class CensusCount:
    """Result of a census at one moment."""

    def __init__(self, counts: dict[str, dict[str, int]]) -> None:
        self._counts = counts

    def counted(self) -> CensusCount:
        return self

    def of_crd(self, name: str) -> dict[str, int]:
        return self._counts.get(name, {})


class _Counter:
    """Stored apiVersions of one collection."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._entries = objects.entries
        self.counts: Counter[str] = Counter()
        self._uncounted = iter(list(objects.entries.values()))
        """Entries at the beginning; later changes are added and subtracted."""
        objects.observers.append(self._changed)

    def goes_on(self) -> bool:
        """Count some more entries; return whether there may be others."""
        some = list(islice(self._uncounted, _AT_ONCE))
        self.counts.update(map(_stored_in, some))
        if len(some) == _AT_ONCE:
            return True
        self._uncounted = iter(())
        return False

    def follows(self, objects: Objects) -> bool:
        """Return False once the collection was reloaded, after which counting starts over."""
        if objects is self._objects and objects.entries is self._entries:
            return True
        self.close()
        return False

    def close(self) -> None:
        self._objects.observers.remove(self._changed)

    def _changed(self, change: Change[CacheEntry]) -> None:
        if change.old is not None:
            self.counts[_stored_in(change.old)] -= 1
        if change.new is not None:
            self.counts[_stored_in(change.new)] += 1


def _stored_in(entry: CacheEntry) -> str:
    """Return the stored apiVersion; damaged bytes are counted too, as they need attention."""
    try:
        return entry.api_version
    except UnreadableEntry:
        return _UNREADABLE


class StoredPrinter(TablePrinter):
    """CRDs in a table, with one more column that only ``-o wide`` shows."""

    def __init__(self, plain: TablePrinter, census: ServerCensus | CensusCount) -> None:
        self._plain = plain
        self._census = census
        self.definitions = [
            *plain.definitions,
            {
                "name": "Stored",
                "type": "string",
                "format": "",
                "description": "How many objects are stored at which version.",
                "priority": 1,
            },
        ]

    async def detach(self) -> TablePrinter:
        if isinstance(self._census, ServerCensus):
            await self._census.prepare()
        return StoredPrinter(self._plain, self._census.counted())

    def cells(self, obj: dict[str, Any], now: datetime, work: Work | None = None) -> list[Any]:
        counts = self._census.of_crd(obj.get("metadata", {}).get("name", ""))
        shown = ",".join(f"{version}={count}" for version, count in counts.items())
        return [*self._plain.cells(obj, now, work), shown]
