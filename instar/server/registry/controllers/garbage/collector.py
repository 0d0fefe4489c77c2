"""Garbage collector: follows every collection and acts on the verdicts of ``owner_graph.py``.

Created by ``server/lifecycle/composition.py``. Writes are guarded by uid or revision, so a second
collector would do no harm; on a shared store only the leader works. Follows upstream's controller,
without its delay.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.kube.api.names import parse_group_version
from instar.server.registry.controllers.garbage.events import tell_of_stray
from instar.server.registry.controllers.garbage.owner_graph import (
    FOREGROUND,
    ORPHAN,
    OwnerGraphNode,
    OwnerIndex,
    OwnerReference,
    OwnerStanding,
    OwnerVerdict,
    judge,
    references,
)
from instar.server.registry.controllers.garbage.writer import (
    drop_finalizer,
    drop_references,
    remove,
    unblock,
)
from instar.server.registry.controllers.leadership import Leadership
from instar.server.registry.controllers.queue import Delays, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.lazy_entry import load_entries
from instar.wire.storage.store import StoreError
from instar.wire.storage.watchcache.collection import Change, CollectionReloaded

log = logging.getLogger(__name__)
_MENTION = b'"ownerReferences":[{'
_DELETED = b'"deletionTimestamp":"'
_DELAYS = Delays(0.1, 30.0)
_AT_ONCE = 50
"""Objects deleted concurrently: they share transactions and leave time for requests."""
_SLICE = 2_000
_READ = 500
"""Objects examined per loop iteration, which may have to be read from disk."""
_UNKNOWN_SECONDS = 30.0
_ABSENT_KEPT = 10_000
_AGAIN_SECONDS = 1.0


class GarbageCollector:
    """Maintains the owner graph and deletes or releases dependents."""

    def __init__(self, context: Context, catalog: Catalog, leadership: Leadership) -> None:
        self._context = context
        self._catalog = catalog
        self._leadership = leadership
        self._owners = OwnerIndex()
        self._followed: dict[str, Resource] = {}
        self._absent: dict[str, None] = {}
        """The latest uids known not to exist; a uid never comes back."""
        self._told: set[tuple[OwnerGraphNode, str]] = set()
        """References across namespaces that an Event was written for."""
        self._looking: asyncio.Task[None] | None = None
        self._work: Queue[OwnerGraphNode] = Queue("object", self._attend, _DELAYS, at_once=_AT_ONCE)

    def start(self) -> None:
        """Start before leader election begins, because being elected starts the work."""
        for resource in self._catalog.resources():
            self._follow(resource)
        self._catalog.on_opened(self._opened)
        self._catalog.on_closed(self._leave)
        self._context.backend.cache.on_reset(self._start_over)
        self._leadership.on_elected(self._look_at_all)

    async def stop(self) -> None:
        self._stop_looking()
        await self._work.stop()

    # What changed -----------------------------------------------------------------------------

    def _follow(self, resource: Resource) -> None:
        serving, prefix = resource.serving, resource.objects.prefix
        if serving.plural == "events" or serving.verbs == ("create",):
            return
        if prefix not in self._followed:
            resource.follow(partial(self._changed, prefix))
        self._followed[prefix] = resource

    def _opened(self, resource: Resource) -> None:
        self._follow(resource)
        if resource.objects.entries:
            asyncio.get_running_loop().create_task(self._look_at(resource))

    def _leave(self, resource: Resource) -> None:
        """Forget a closed collection; it is examined again if it is served again."""
        prefix = resource.objects.prefix
        self._followed.pop(prefix, None)
        for suffix in resource.objects.entries:
            self._owners.remove(OwnerGraphNode(prefix, suffix))

    def _changed(self, prefix: str, change: Change[CacheEntry]) -> None:
        new = change.new
        if new is not None and not self._owners and not _is_concerned(new):
            return  # most writes, and all of them where no object has owners
        node = OwnerGraphNode(prefix, change.suffix)
        before = self._owners.references(node)
        if new is None:
            self._owners.remove(node)
            self._told = {one for one in self._told if one[0] != node} if self._told else self._told
            if self._owners or before:
                self._gone(change, before)
            return
        if before or _MENTION in new.json():
            metadata = _metadata(new)
            self._owners.put(node, references(metadata))
            self._wake_owners(node.suffix, set(before) - set(self._owners.references(node)))
            self._work.add(node)
        elif _DELETED in new.json():
            self._work.add(node)

    def _gone(self, change: Change[CacheEntry], before: tuple[OwnerReference, ...]) -> None:
        uid = _metadata(change.old).get("uid") if change.old is not None else None
        dependents = self._owners.dependents(str(uid)) if uid else ()
        if dependents:
            self._note_absent(str(uid))
        for dependent in dependents:
            self._work.add(dependent)
        self._wake_owners(change.suffix, set(before))

    def _wake_owners(self, suffix: str, lost: set[OwnerReference]) -> None:
        """Queue owners in foreground deletion, which may have waited for this object."""
        namespace = suffix.rpartition("/")[0]
        for reference in lost:
            owner = self._resource_of(reference)
            if owner is not None:
                self._work.add(
                    OwnerGraphNode(owner.objects.prefix, _place(owner, reference, namespace))
                )

    def _start_over(self) -> None:
        self._owners.clear()
        self._stop_looking()
        self._looking = asyncio.get_running_loop().create_task(self._look_until_seen())

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _look_until_seen(self) -> None:
        while True:
            try:
                await self._look_at_all()
                return
            except (ApiError, StoreError) as error:
                log.warning("garbage collector cannot read the objects yet, will retry: %s", error)
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _look_at_all(self) -> None:
        """Examine all objects once at the start, by their bytes, so that few must be parsed."""
        for resource in list(self._followed.values()):
            await self._look_at(resource)

    async def _look_at(self, resource: Resource) -> None:
        try:
            await self._look_at_objects(resource)
        except CollectionReloaded:
            return  # then everything is started over

    async def _look_at_objects(self, resource: Resource) -> None:
        objects = resource.objects
        async for part in objects.slices():
            for start in range(0, len(part), _READ):
                some = part[start : start + _READ]
                # Later changes arrive as change events.
                current = [each for name, each in some if objects.entries.get(name) is each]
                for entry in load_entries(current):
                    self._look_into(objects.prefix, entry)
                await asyncio.sleep(0)

    def _look_into(self, prefix: str, entry: CacheEntry) -> None:
        raw = entry.json()
        node = OwnerGraphNode(prefix, entry.suffix)
        if _MENTION in raw:
            self._owners.put(node, references(_metadata(entry)))
            self._work.add(node)
        elif _DELETED in raw:
            self._work.add(node)

    # What follows -----------------------------------------------------------------------------

    async def _attend(self, node: OwnerGraphNode) -> float | None:
        resource = self._followed.get(node.prefix)
        entry = None if resource is None else resource.objects.entries.get(node.suffix)
        if resource is None or entry is None or resource.closed or not self._leadership.leads:
            return None
        try:
            metadata = entry.decode()["metadata"]
        except UnreadableEntry:
            return None
        if "deletionTimestamp" in metadata:
            await self._let_go(resource, entry, metadata)
            return None
        if not self._owners.references(node):
            return None
        return await self._judge(resource, node, entry, metadata)

    async def _let_go(self, resource: Resource, entry: CacheEntry, metadata: Object) -> None:
        """Finish an owner's deletion: release its dependents (orphan), or wait for them
        (foreground)."""
        finalizers, uid = metadata.get("finalizers") or (), metadata.get("uid", "")
        if ORPHAN in finalizers:
            for dependent in self._owners.dependents(uid):
                await self._release(dependent, {uid})
            await drop_finalizer(self._context, resource, entry.suffix, ORPHAN)
        elif FOREGROUND in finalizers:
            for dependent in self._owners.dependents(uid):
                self._work.add(dependent)
            await self._context.backend.consistent()
            if next(self._owners.blocking(uid), None) is None:
                await drop_finalizer(self._context, resource, entry.suffix, FOREGROUND)

    async def _judge(
        self, resource: Resource, node: OwnerGraphNode, entry: CacheEntry, metadata: Object
    ) -> float | None:
        namespace = metadata.get("namespace", "")
        found = {one: self._standing(one, namespace) for one in self._owners.references(node)}
        if OwnerStanding.DANGLING in found.values():
            # The cache may be behind, so confirm that an owner does not exist.
            await self._context.backend.consistent()
            found = {one: self._standing(one, namespace) for one in found}
        for reference, standing in found.items():
            if standing in (OwnerStanding.DANGLING, OwnerStanding.STRAY):
                await self._tell_if_elsewhere(node, entry, reference)
        if resource.objects.entries.get(node.suffix) is not entry:
            return 0.0
        uid = str(metadata.get("uid", ""))
        dependents = self._owners.dependents(uid)
        match judge(found.values(), has_dependents=bool(dependents)):
            case OwnerVerdict.UNDECIDED:
                return _UNKNOWN_SECONDS
            case OwnerVerdict.RELEASE:
                lost = {one.uid for one, is_ in found.items() if is_ is not OwnerStanding.SOLID}
                await self._release(node, lost)
            case OwnerVerdict.DELETE_IN_FOREGROUND:
                if any(self._in_foreground(dependent) for dependent in dependents):
                    await unblock(self._context, resource, node.suffix)
                await remove(self._context, resource, node.suffix, uid, "Foreground")
            case OwnerVerdict.DELETE:
                await remove(self._context, resource, node.suffix, uid, _own_policy(metadata))
        return None

    def _standing(self, reference: OwnerReference, namespace: str) -> OwnerStanding:
        resource = self._resource_of(reference)
        if resource is None:
            return OwnerStanding.UNKNOWN
        entry = resource.objects.entries.get(_place(resource, reference, namespace))
        if entry is None:
            stray = resource.serving.namespaced and not namespace
            return OwnerStanding.STRAY if stray else OwnerStanding.DANGLING
        metadata = _metadata(entry)
        if metadata.get("uid") != reference.uid:
            return OwnerStanding.DANGLING
        waits = FOREGROUND in (metadata.get("finalizers") or ())
        return (
            OwnerStanding.WAITING
            if waits and "deletionTimestamp" in metadata
            else OwnerStanding.SOLID
        )

    def _resource_of(self, reference: OwnerReference) -> Resource | None:
        try:
            group = parse_group_version(reference.api_version).group
        except ValueError:
            return None
        return self._catalog.of_kind(group, reference.kind)

    async def _tell_if_elsewhere(
        self, node: OwnerGraphNode, entry: CacheEntry, reference: OwnerReference
    ) -> None:
        """Write an Event about an owner in another namespace, which cannot own the object."""
        owners = self._resource_of(reference)
        if owners is None or not owners.serving.namespaced:
            return
        if reference.uid in self._absent or (node, reference.uid) in self._told:
            return
        mark = f'"uid":"{reference.uid}"'.encode()
        for position, other in enumerate(list(owners.objects.entries.values())):
            if mark in other.json() and _metadata(other).get("uid") == reference.uid:
                self._told.add((node, reference.uid))
                events = self._catalog.builtin("", "events")
                await tell_of_stray(self._context, events, entry, reference)
                return
            if position % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
        self._note_absent(reference.uid)

    def _note_absent(self, uid: str) -> None:
        self._absent[uid] = None
        if len(self._absent) > _ABSENT_KEPT:
            del self._absent[next(iter(self._absent))]

    async def _release(self, node: OwnerGraphNode, uids: set[str]) -> None:
        resource = self._followed.get(node.prefix)
        if resource is not None and any(one.uid in uids for one in self._owners.references(node)):
            await drop_references(self._context, resource, node.suffix, uids)

    def _in_foreground(self, node: OwnerGraphNode) -> bool:
        resource = self._followed.get(node.prefix)
        entry = None if resource is None else resource.objects.entries.get(node.suffix)
        metadata = {} if entry is None else _metadata(entry)
        return "deletionTimestamp" in metadata and FOREGROUND in (metadata.get("finalizers") or ())


def _is_concerned(entry: CacheEntry) -> bool:
    raw = entry.json()
    return _MENTION in raw or _DELETED in raw


def _place(resource: Resource, reference: OwnerReference, namespace: str) -> str:
    """Return the owner's key suffix: it must be in the dependent's namespace or cluster-scoped."""
    inside = namespace if resource.serving.namespaced else ""
    return f"{inside}/{reference.name}" if inside else reference.name


def _own_policy(metadata: Object) -> str:
    finalizers = metadata.get("finalizers") or ()
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"


def _metadata(entry: CacheEntry) -> Object:
    try:
        metadata = entry.decode().get("metadata")
    except UnreadableEntry:
        return {}
    return metadata if isinstance(metadata, dict) else {}
