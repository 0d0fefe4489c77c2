"""APIService objects for the group versions that CRDs serve.

Part of the bootstrap controller (``controller.py``): creates an APIService when the first CRD
serves a group version, and deletes the APIService when no CRD serves that version any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from instar.server.registry.controllers.bootstrap.objects import AUTOMANAGED, custom_api_object
from instar.server.registry.controllers.bootstrap.writer import BootstrapWriter
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change

_BACKOFF = Backoff(0.5, 30.0)
_GROUPING_SECONDS = 0.05
"""Seconds after a change of a CRD until its APIServices are written."""
_CONCURRENT_WRITES = 20


class CustomApiServices:
    """Keeps one APIService per served custom group version."""

    def __init__(self, catalog: Catalog, maker: BootstrapWriter, leads: Callable[[], bool]) -> None:
        self._catalog, self._maker, self._leads = catalog, maker, leads
        self._services = catalog.builtin("apiregistration.k8s.io", "apiservices")
        self._known: dict[str, frozenset[tuple[str, str]]] = {}
        """CRD → the group versions it serves."""
        self._serving: Counter[tuple[str, str]] = Counter()
        self._names: Queue[tuple[str, str]] = Queue(
            "the API service of",
            self._reconcile,
            _BACKOFF,
            max_concurrent=_CONCURRENT_WRITES,
            supervision=maker.supervision,
        )

    def start(self) -> None:
        crds = self._catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
        crds.objects.observers.append(lambda change: self._look_at(change.suffix))
        self._services.objects.observers.append(self._changed)

    async def stop(self) -> None:
        await self._names.stop()

    def look_at_all(self) -> None:
        """Queue every group version, including stale APIServices of CRDs deleted while not
        watching."""
        for resource in self._catalog.customs():
            self._look_at(resource.crd.name)
        there = self._services.objects.entries
        for group, version in self._serving:
            if f"{version}.{group}" not in there:
                self._names.add((group, version))
        for entry in list(there.values()):
            version, _, group = entry.suffix.partition(".")
            if (group, version) not in self._serving and _is_ours(entry):
                self._names.add((group, version))

    def _look_at(self, crd: str) -> None:
        served = self._served(crd)
        before = self._known.get(crd, frozenset())
        self._serving.subtract(before)
        self._serving.update(served)
        if served:
            self._known[crd] = served
        else:
            self._known.pop(crd, None)
        for name in before ^ served:
            if not self._serving[name]:
                del self._serving[name]
            # Delayed: the writer of the CRD waits for its reconciling, but no client waits for
            # this.
            self._names.add_later(name, _GROUPING_SECONDS)

    def _served(self, crd: str) -> frozenset[tuple[str, str]]:
        resource = self._catalog.custom(crd)
        if resource is None or not resource.crd.is_true("Established"):
            return frozenset()
        return frozenset((resource.crd.group, version) for version in resource.crd.served())

    def _changed(self, change: Change[CacheEntry]) -> None:
        """Recreate an APIService that a client has deleted."""
        if change.new is None:
            version, _, group = change.suffix.partition(".")
            if self._serving[(group, version)] > 0:
                self._names.add((group, version))

    async def _reconcile(self, name: tuple[str, str]) -> None:
        if not self._leads():
            return
        wanted = self._serving[name] > 0
        piece = custom_api_object(*name)
        resource, _, entry = self._maker.found(piece)
        if wanted and entry is None:
            await self._maker.make(piece)
        elif not wanted and entry is not None and _is_ours(entry):
            await self._maker.remove(resource, entry)


def _is_ours(entry: CacheEntry) -> bool:
    return entry.labels.get(AUTOMANAGED) == "true"
