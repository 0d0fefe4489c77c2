"""Endpoints that a user writes for a Service without selector, as EndpointSlices.

``lifecycle/controller_setup.py`` creates it; the slices of an Endpoints object are computed in
``kube/builtin_rules/derived/mirrored_slices.py``. Slices of Services with a selector need pods on
nodes, and are kube-controller-manager's.
"""

from __future__ import annotations

from itertools import chain

from instar.base import offload
from instar.base.json_values import Object
from instar.kube.builtin_rules.derived.mirrored_slices import (
    MANAGED_BY,
    MIRROR,
    SERVICE_NAME,
    is_mirrored,
    place_of,
    same_slice,
    slices_of,
)
from instar.server.registry.controllers.bootstrap.writer import BootstrapWriter
from instar.server.registry.controllers.followed_keys import FollowedKeys
from instar.server.registry.controllers.manager_lease import Duty
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.watchcache.collection import Change

_Held = tuple[CacheEntry, Object]
"""A stored slice and its object."""


class EndpointMirror:
    """Keeps one EndpointSlice for the ports and address type of each subset."""

    def __init__(self, context: Context, catalog: Catalog, duty: Duty) -> None:
        self._context = context
        self._endpoints = catalog.builtin("", "endpoints")
        self._services = catalog.builtin("", "services")
        self._slices = catalog.builtin("discovery.k8s.io", "endpointslices")
        self._writer = BootstrapWriter(context, catalog)
        self._keys = FollowedKeys(
            "mirrored endpoints", context, duty, self._endpoints, self._reconcile
        )

    def start(self) -> None:
        self._keys.start()
        self._services.objects.observers.append(self._service_changed)
        self._slices.objects.observers.append(self._slice_changed)

    async def stop(self) -> None:
        await self._keys.stop()

    def _service_changed(self, change: Change[CacheEntry]) -> None:
        if change.suffix in self._endpoints.objects.entries:
            self._keys.add([change.suffix])

    def _slice_changed(self, change: Change[CacheEntry]) -> None:
        entry = change.new or change.old
        if entry is not None and entry.labels.get(MANAGED_BY) == MIRROR:
            namespace = change.suffix.partition("/")[0]
            self._keys.add([f"{namespace}/{entry.labels.get(SERVICE_NAME, '')}"])

    async def _reconcile(self, suffix: str) -> float | None:
        endpoints, service = _read(self._endpoints, suffix), _read(self._services, suffix)
        wanted: list[Object] = []
        if endpoints is not None and service is not None and is_mirrored(endpoints, service):
            size = self._endpoints.objects.entries[suffix].size
            wanted = await offload.run(size, slices_of, endpoints)
        await self._adopt(suffix, wanted)
        return None

    async def _adopt(self, suffix: str, wanted: list[Object]) -> None:
        """Make the slices of an Endpoints object the wanted ones: keep or change those with the
        same ports, then change others of the type, and remove the rest."""
        present = self._present(suffix)
        new: list[Object] = []
        for piece in wanted:
            found = present.get(place_of(piece))
            if not found:
                new.append(piece)
                continue
            same = next((at for at, each in enumerate(found) if same_slice(each[1], piece)), None)
            entry, before = found.pop(same or 0)
            if same is None:
                await self._change(entry, before, piece)
        spare: dict[str, list[_Held]] = {}
        for (kind, *_), held in present.items():
            spare.setdefault(kind, []).extend(held)
        for piece in new:
            if spare.get(piece["addressType"]):
                await self._change(*spare[piece["addressType"]].pop(), piece)
            else:
                await self._make(piece)
        for entry, _ in chain.from_iterable(spare.values()):
            await self._writer.remove(self._slices, entry)

    def _present(self, suffix: str) -> dict[tuple[str, ...], list[_Held]]:
        """Return the slices of an Endpoints object by what they differ in."""
        namespace, _, name = suffix.partition("/")
        objects = self._slices.objects
        found: dict[tuple[str, ...], list[_Held]] = {}
        for each in objects.suffixes(f"{namespace}/"):
            entry = objects.entries[each]
            if entry.labels.get(MANAGED_BY) == MIRROR and entry.labels.get(SERVICE_NAME) == name:
                obj = entry.decode()
                found.setdefault(place_of(obj), []).append((entry, obj))
        return found

    async def _make(self, piece: Object) -> None:
        metadata = piece["metadata"]
        name = self._context.generated_name(f"{metadata['labels'][SERVICE_NAME]}-")
        await self._writer.make({**piece, "metadata": {**metadata, "name": name}})

    async def _change(self, entry: CacheEntry, before: Object, piece: Object) -> None:
        metadata = {**before["metadata"], **piece["metadata"]}
        metadata["generation"] = metadata.get("generation", 0) + 1
        await self._writer.rewrite(self._slices, entry, {**before, **piece, "metadata": metadata})


def _read(resource: Resource, suffix: str) -> Object | None:
    entry = resource.objects.entries.get(suffix)
    try:
        return None if entry is None else entry.decode()
    except UnreadableEntry:
        return None
