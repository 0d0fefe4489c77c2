"""Storage protection: lets a deleted claim, volume or attributes class go once it is not in use.

The server gives these kinds a finalizer when they are created, as kube-apiserver does. This
controller removes the finalizer from a deleted object: from a claim when no scheduled pod mounts
it, from a volume when it is not bound, from a VolumeAttributesClass when no claim or volume names
it. ``lifecycle/controller_setup.py`` creates it; only the leader acts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from instar.base import offload
from instar.base.json_values import Object
from instar.server.registry.controllers import controller_names as names
from instar.server.registry.controllers.garbage.writer import drop_finalizer
from instar.server.registry.controllers.manager_lease import Duty
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.watchcache.collection import Change

_BACKOFF = Backoff(0.2, 30.0)
_CLAIMS, _VOLUMES = "persistentvolumeclaims", "persistentvolumes"
_CLASSES = "volumeattributesclasses"
_KINDS = {
    _CLAIMS: ("", "kubernetes.io/pvc-protection", names.CLAIM_PROTECTION),
    _VOLUMES: ("", "kubernetes.io/pv-protection", names.VOLUME_PROTECTION),
    _CLASSES: ("storage.k8s.io", "kubernetes.io/vac-protection", names.CLASS_PROTECTION),
}
"""Plural → group, finalizer, and the name of the controller in kube-controller-manager."""
Key = tuple[str, str]
"""Plural, and the key suffix of an object."""


class StorageProtection:
    """Removes the protection finalizers of deleted storage objects."""

    def __init__(
        self, context: Context, catalog: Catalog, duty: Duty, enabled: frozenset[str]
    ) -> None:
        """``enabled``: names of the controllers that run, as ``--controllers`` chose them."""
        self._context, self._duty = context, duty
        self._kinds = {
            plural: resource
            for plural, (group, _, name) in _KINDS.items()
            if name in enabled and (resource := catalog.find(group, plural)) is not None
        }
        self._claims = catalog.builtin("", _CLAIMS)
        self._volumes = catalog.builtin("", _VOLUMES)
        self._pods = catalog.builtin("", "pods")
        self._waiting: set[Key] = set()
        """Deleted objects that were in use when they were last checked."""
        self._work: Queue[Key] = Queue(
            "storage protection of", self._reconcile, _BACKOFF, max_concurrent=1,
            supervision=context.supervision,
        )  # fmt: skip

    def start(self) -> None:
        for plural, resource in self._kinds.items():
            resource.objects.observers.append(self._enqueue_changed(plural))
        for resource in (self._pods, self._claims, self._volumes):
            resource.objects.observers.append(self._user_changed)
        self._context.backend.cache.on_reset(self._look_at_all)
        self._duty.on_elected(self._elected)

    async def stop(self) -> None:
        await self._work.stop()

    async def _elected(self) -> None:
        self._look_at_all()

    def _look_at_all(self) -> None:
        for plural, resource in self._kinds.items():
            for suffix in resource.objects.entries:
                self._work.add((plural, suffix))

    def _enqueue_changed(self, plural: str) -> Callable[[Change[CacheEntry]], None]:
        def changed(change: Change[CacheEntry]) -> None:
            if change.old is not None and change.new is not None:
                self._work.add((plural, change.suffix))

        return changed

    def _user_changed(self, change: Change[CacheEntry]) -> None:
        """Check objects that were in use again: the change may have ended that."""
        if self._waiting and change.old is not None:
            for key in self._waiting:
                self._work.add(key)

    async def _reconcile(self, key: Key) -> None:
        self._waiting.discard(key)
        plural, suffix = key
        resource, finalizer = self._kinds[plural], _KINDS[plural][1]
        entry = resource.objects.entries.get(suffix)
        if entry is None or not self._duty.leads:
            return
        try:
            obj = entry.decode()
        except UnreadableEntry:
            return
        metadata = obj["metadata"]
        protected = finalizer in (metadata.get("finalizers") or ())
        if not metadata.get("deletionTimestamp") or not protected:
            return
        if await self._is_used(plural, obj):
            self._waiting.add(key)
        else:
            await drop_finalizer(self._context, resource, suffix, finalizer)

    async def _is_used(self, plural: str, obj: Object) -> bool:
        if plural == _VOLUMES:
            return (obj.get("status") or {}).get("phase") == "Bound"
        name = obj["metadata"]["name"]
        if plural == _CLAIMS:
            pods = _entries(self._pods, f"{obj['metadata']['namespace']}/")
            return await _any(pods, lambda pod: mounts_claim(pod, name))
        users = [*_entries(self._claims, ""), *_entries(self._volumes, "")]
        return await _any(users, lambda user: names_class(user, name))


def mounts_claim(pod: Object, name: str) -> bool:
    """Return whether a pod holds the claim; as upstream, one without a node does not."""
    spec, metadata = pod.get("spec") or {}, pod["metadata"]
    if not spec.get("nodeName"):
        return False
    ended = bool(metadata.get("deletionTimestamp")) and not metadata.get(
        "deletionGracePeriodSeconds"
    )
    for volume in spec.get("volumes") or ():
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
            return True
        ephemeral = volume.get("ephemeral") is not None and not ended
        if ephemeral and f"{metadata['name']}-{volume['name']}" == name:
            return True
    return False


def names_class(user: Object, name: str) -> bool:
    """Return whether a claim or volume names the VolumeAttributesClass, in spec or status."""
    spec, status = user.get("spec") or {}, user.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    found = (
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        target,
    )
    return name in found


def _entries(resource: Resource, below: str) -> list[CacheEntry]:
    objects = resource.objects
    return [objects.entries[suffix] for suffix in objects.suffixes(below)]


async def _any(entries: Iterable[CacheEntry], holds: Callable[[Object], bool]) -> bool:
    found = list(entries)

    def search() -> bool:
        for entry in found:
            try:
                if holds(entry.decode()):
                    return True
            except UnreadableEntry:
                continue
        return False

    return await offload.run(sum(entry.size for entry in found), search)
