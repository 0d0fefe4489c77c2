"""Services and EndpointSlices of this server's store, as the aggregation layer reads them.

``aggregator.py`` makes one; ``service_endpoints.py`` and ``conditions.py`` read through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from instar.base.json_values import Object
from instar.server.aggregation.service_endpoints import SERVICE_LABEL
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change


class StoredServices:
    """Implements ``ServiceObjects``; tells which Service a change concerns."""

    def __init__(self, catalog: Catalog) -> None:
        self._services = catalog.builtin("", "services").objects
        self._endpoints = catalog.builtin("", "endpoints").objects
        self._slices = catalog.builtin("discovery.k8s.io", "endpointslices").objects
        self._followed = False

    def follow(self, changed: Callable[[str, str], None]) -> None:
        """Call ``changed`` with the namespace and name of each Service that may be reached
        differently. Called when the first API is proxied: until then changes cost nothing."""
        if self._followed:
            return
        self._followed = True

        def note(change: Change[CacheEntry]) -> None:
            namespace, _, name = change.suffix.partition("/")
            changed(namespace, name)

        def note_slice(change: Change[CacheEntry]) -> None:
            namespace = change.suffix.partition("/")[0]
            for entry in (change.old, change.new):
                name = None if entry is None else entry.labels.get(SERVICE_LABEL)
                if name:
                    changed(namespace, name)

        self._services.observers.append(note)
        self._endpoints.observers.append(note)
        self._slices.observers.append(note_slice)

    def service(self, namespace: str, name: str) -> Object | None:
        entry = self._services.entries.get(f"{namespace}/{name}")
        return None if entry is None else entry.decode()

    def slices(self, namespace: str, name: str) -> list[Object]:
        found = [
            self._slices.entries[suffix].decode()
            for suffix in self._slices.suffixes(f"{namespace}/")
            if self._slices.entries[suffix].labels.get(SERVICE_LABEL) == name
        ]
        if found:
            return found
        entry = self._endpoints.entries.get(f"{namespace}/{name}")
        return [] if entry is None else list(_mirrored(entry.decode()))


def _mirrored(endpoints: Object) -> Iterator[Object]:
    """The slices that kube-controller-manager would make of an Endpoints object."""
    for subset in endpoints.get("subsets") or ():
        yield {
            "addressType": "IPv4",
            "endpoints": [
                *_with_readiness(subset.get("addresses"), ready=True),
                *_with_readiness(subset.get("notReadyAddresses"), ready=False),
            ],
            "ports": subset.get("ports") or [],
        }


def _with_readiness(addresses: list[Any] | None, *, ready: bool) -> Iterator[Object]:
    for address in addresses or ():
        yield {"addresses": [address.get("ip", "")], "conditions": {"ready": ready}}
