"""How many objects lie in the store at which version: exact, because the cache sees every byte.

Counted once per collection when first asked, and kept current from then on. Knows custom
resources only: built-ins are stored in one version for good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from instar.api.names import by_priority
from instar.metrics import Measured
from instar.registry.resources.catalog import Catalog
from instar.registry.resources.columns import TablePrinter
from instar.registry.resources.resource import Resource
from instar.registry.stored.backend import Objects
from instar.registry.stored.entry import Entry, Unreadable
from instar.storage.collection import Change

Counts = dict[str, int]
_UNREADABLE = "unreadable"


class Census:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._counters: dict[str, _Counter] = {}
        catalog.on_closed(self._forget)

    def of(self, resource: Resource) -> Counts:
        """Objects per version, best version first; the storage version is always listed."""
        objects = resource.objects
        counter = self._counters.get(objects.prefix)
        if counter is None or not counter.follows(objects):
            counter = self._counters[objects.prefix] = _Counter(objects)
        serving = resource.serving
        found = {serving.storage.name: 0}
        for api_version, count in counter.counts.items():
            if count:
                found[api_version.rpartition("/")[2]] = count
        return {version: found[version] for version in by_priority(found)}

    def _forget(self, resource: Resource) -> None:
        counter = self._counters.pop(resource.objects.prefix, None)
        if counter is not None:
            counter.close()

    def of_crd(self, name: str) -> Counts:
        resource = self._catalog.custom(name)
        return {} if resource is None else self.of(resource)

    def document(self) -> dict[str, Any]:
        """The body of ``/instar/census``."""
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

    def counted(self) -> Counted:
        return Counted({item.crd.name: dict(self.of(item)) for item in self._catalog.customs()})

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


class Counted:
    """What a census said at one moment."""

    def __init__(self, counts: dict[str, dict[str, int]]) -> None:
        self._counts = counts

    def counted(self) -> Counted:
        return self

    def of_crd(self, name: str) -> dict[str, int]:
        return self._counts.get(name, {})


class _Counter:
    """Stored apiVersions of one collection."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._entries = objects.entries
        self.counts = Counter(map(_stored_in, objects.entries.values()))
        objects.listeners.append(self._changed)

    def follows(self, objects: Objects) -> bool:
        """False once the collection was loaded anew: then counting starts over."""
        if objects is self._objects and objects.entries is self._entries:
            return True
        self.close()
        return False

    def close(self) -> None:
        self._objects.listeners.remove(self._changed)

    def _changed(self, change: Change[Entry]) -> None:
        if change.old is not None:
            self.counts[_stored_in(change.old)] -= 1
        if change.new is not None:
            self.counts[_stored_in(change.new)] += 1


def _stored_in(entry: Entry) -> str:
    """Damaged bytes are counted, too: whoever looks for what must be migrated wants to know."""
    try:
        return entry.api_version
    except Unreadable:
        return _UNREADABLE


class StoredPrinter(TablePrinter):
    """CRDs in a table, with one more column that only ``-o wide`` shows."""

    def __init__(self, plain: TablePrinter, census: Census | Counted) -> None:
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

    def detached(self) -> TablePrinter:
        return StoredPrinter(self._plain, self._census.counted())

    def cells(self, obj: dict[str, Any], now: datetime) -> list[Any]:
        counts = self._census.of_crd(obj.get("metadata", {}).get("name", ""))
        shown = ",".join(f"{version}={count}" for version, count in counts.items())
        return [*self._plain.cells(obj, now), shown]
