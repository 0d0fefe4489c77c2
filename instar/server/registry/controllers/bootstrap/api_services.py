"""APIService objects for the group versions that CRDs serve.

Part of the bootstrap controller (``controller.py``): creates an APIService when the first CRD
serves a group version, puts its spec back when a client changes it, and deletes the APIService when
no CRD serves that version any more. An APIService without the label is its owner's, forever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from instar.base.json_values import Object, same_json
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


_WANTED_TEXTS = [
    f'"{name}":{value}'.encode()
    for name, value in custom_api_object("", "")["spec"].items()
    if isinstance(value, int)
]


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
        """Look at an APIService that a client has deleted or changed."""
        version, _, group = change.suffix.partition(".")
        if change.new is None:
            if self._serving[(group, version)] > 0:
                self._names.add((group, version))
        elif change.old is not None and _is_ours(change.new) and not _looks_untouched(change.new):
            self._names.add((group, version))

    async def _reconcile(self, name: tuple[str, str]) -> None:
        if not self._leads():
            return
        wanted = self._serving[name] > 0
        piece = custom_api_object(*name)
        resource, _, entry = self._maker.find(piece)
        if wanted and entry is None:
            await self._maker.make(piece)
        elif entry is not None and _is_ours(entry):
            if not wanted:
                await self._maker.remove(resource, entry)
            else:
                await put_back(self._maker, piece)


async def put_back(maker: BootstrapWriter, piece: Object) -> None:
    """Give a stored APIService the spec of ``piece``; a local one is available."""
    resource, _, entry = maker.find(piece)
    if entry is None:
        return
    obj = entry.decode()
    if same_json(obj["spec"], piece["spec"]):
        return
    condition = {**piece["status"]["conditions"][0], "lastTransitionTime": maker.timestamp()}
    await maker.rewrite(
        resource, entry, {**obj, "spec": piece["spec"], "status": {"conditions": [condition]}}
    )


def _looks_untouched(entry: CacheEntry) -> bool:
    """Whether the spec is as this controller writes it, seen without decoding: most changes are its
    own."""
    raw = entry.stored()
    return b'"service":' not in raw and all(text in raw for text in _WANTED_TEXTS)


def _is_ours(entry: CacheEntry) -> bool:
    return entry.labels.get(AUTOMANAGED) == "true"
