"""ServiceCIDR controller: protects ranges of cluster IPs that are in use, and says which are ready.

``lifecycle/controller_setup.py`` creates it. A range gets a finalizer; a deleted one goes when all
addresses in it are in another range as well. Addresses are given by
``admission/plugins/service_addresses.py``, not from ranges that are being deleted.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from instar.base.json_values import Object
from instar.kube.builtin_rules.derived.service_ranges import Network, networks_of, would_orphan
from instar.server.registry.controllers.bootstrap.objects import MANAGED_BY, OUR_ALLOCATOR
from instar.server.registry.controllers.followed_keys import FollowedKeys
from instar.server.registry.controllers.garbage.writer import drop_finalizer
from instar.server.registry.controllers.manager_lease import Duty
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.make_entry import put_server_object
from instar.server.registry.verbs.conditions import set_condition
from instar.wire.storage.watchcache.collection import Change

_GROUP = "networking.k8s.io"
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
_GRACE = timedelta(seconds=10)
"""Until then every server knows that the range is being deleted, and gives no address from it."""
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "",
    "message": "Kubernetes Service CIDR is ready",
}
_IN_USE = {
    "type": "Ready",
    "status": "False",
    "reason": "Terminating",
    "message": "There are still IPAddresses referencing the ServiceCIDR, please remove them or "
    "create a new ServiceCIDR",
}


class ServiceRangeController:
    """Keeps finalizer and condition of ServiceCIDRs."""

    def __init__(self, context: Context, catalog: Catalog, duty: Duty) -> None:
        self._context = context
        self._ranges = catalog.builtin(_GROUP, "servicecidrs")
        self._addresses = catalog.builtin(_GROUP, "ipaddresses")
        self._keys = FollowedKeys("service range", context, duty, self._ranges, self._reconcile)
        self._waiting: set[str] = set()
        """Deleted ranges with addresses of their own."""

    def start(self) -> None:
        self._keys.start()
        self._ranges.objects.observers.append(self._range_changed)
        self._addresses.objects.observers.append(self._address_changed)

    async def stop(self) -> None:
        await self._keys.stop()

    def _range_changed(self, change: Change[CacheEntry]) -> None:
        self._keys.add(self._waiting - {change.suffix})

    def _address_changed(self, change: Change[CacheEntry]) -> None:
        if change.new is None:
            self._keys.add(self._waiting)

    async def _reconcile(self, name: str) -> float | None:
        self._waiting.discard(name)
        entry = self._ranges.objects.entries.get(name)
        if entry is None:
            return None
        try:
            found = entry.decode()
        except UnreadableEntry:
            return None
        if found["metadata"].get("deletionTimestamp"):
            return await self._let_go(entry, found)
        finalizers = found["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers:
            found["metadata"] = {**found["metadata"], "finalizers": [*finalizers, FINALIZER]}
        await self._put(entry, found, _READY)
        return None

    async def _let_go(self, entry: CacheEntry, found: Object) -> float | None:
        name, metadata = entry.suffix, found["metadata"]
        if FINALIZER not in (metadata.get("finalizers") or ()):
            return None
        if would_orphan(_networks(found), self._other_networks(name), self._given()):
            self._waiting.add(name)
            await self._put(entry, found, _IN_USE)
            return None
        began = datetime.fromisoformat(metadata["deletionTimestamp"])
        left = (began + _GRACE - self._context.now()).total_seconds()
        if left > 0:
            return left
        await drop_finalizer(self._context, self._ranges, name, FINALIZER)
        return None

    async def _put(self, entry: CacheEntry, found: Object, condition: Object) -> None:
        set_condition(found, condition, self._context.timestamp())
        if found != entry.decode():
            backend = self._context.backend
            await put_server_object(backend, self._ranges, entry.suffix, found, entry.revision)

    def _other_networks(self, name: str) -> list[Network]:
        found: list[Network] = []
        for suffix, entry in self._ranges.objects.entries.items():
            try:
                if suffix != name:
                    found += _networks(entry.decode())
            except UnreadableEntry:
                continue
        return found

    def _given(self) -> list[str]:
        """The addresses of Services."""
        return [
            suffix
            for suffix, entry in self._addresses.objects.entries.items()
            if entry.labels.get(MANAGED_BY) == OUR_ALLOCATOR
        ]


def _networks(found: Object) -> list[Network]:
    return networks_of((found.get("spec") or {}).get("cidrs") or ())
