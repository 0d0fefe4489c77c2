"""Endpoints that a user writes for a Service without selector, as EndpointSlices.

``lifecycle/controller_setup.py`` creates it; the slices of an Endpoints object are computed in
``kube/builtin_rules/derived/mirrored_slices.py``. Slices of Services with a selector need pods on
nodes, and are kube-controller-manager's.
"""

from __future__ import annotations

from instar.base.json_values import Object, same_json
from instar.kube.builtin_rules.derived.mirrored_slices import (
    MANAGED_BY,
    MIRROR,
    SERVICE_NAME,
    is_mirrored,
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
            wanted = slices_of(endpoints)
        present = self._present(suffix)
        for piece in list(wanted):
            same = next((one for one in present if same_slice(one.decode(), piece)), None)
            if same is not None:
                present.remove(same)
                wanted.remove(piece)
        for piece in wanted:
            fits = next((one for one in present if _has_type(one.decode(), piece)), None)
            if fits is None:
                await self._make(piece)
            else:
                present.remove(fits)
                await self._change(fits, piece)
        for entry in present:
            await self._writer.remove(self._slices, entry)
        return None

    def _present(self, suffix: str) -> list[CacheEntry]:
        namespace, _, name = suffix.partition("/")
        objects = self._slices.objects
        entries = [objects.entries[each] for each in objects.suffixes(f"{namespace}/")]
        return [
            entry
            for entry in entries
            if entry.labels.get(MANAGED_BY) == MIRROR and entry.labels.get(SERVICE_NAME) == name
        ]

    async def _make(self, piece: Object) -> None:
        metadata = piece["metadata"]
        name = self._context.generated_name(f"{metadata['labels'][SERVICE_NAME]}-")
        await self._writer.make({**piece, "metadata": {**metadata, "name": name}})

    async def _change(self, entry: CacheEntry, piece: Object) -> None:
        before = entry.decode()
        metadata = {**before["metadata"], **piece["metadata"]}
        metadata["generation"] = metadata.get("generation", 0) + 1
        await self._writer.rewrite(self._slices, entry, {**before, **piece, "metadata": metadata})


def _read(resource: Resource, suffix: str) -> Object | None:
    entry = resource.objects.entries.get(suffix)
    try:
        return None if entry is None else entry.decode()
    except UnreadableEntry:
        return None


def _has_type(slice_: Object, piece: Object) -> bool:
    """Whether the slice can become the wanted one: its address type never changes."""
    return same_json(slice_.get("addressType"), piece["addressType"])
