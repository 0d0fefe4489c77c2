"""Owner graph of all objects: kept current by the changes of every collection it follows.

The graph passes the objects to examine to ``collector.py`` through ``enqueue``; the collector then
looks up their owners and dependents here. No step blocks the event loop for long, however many
references there are: objects are read once (``object_facts.py``), large ones in a thread, and long
loops yield to the event loop. Nothing is written here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from instar.base import offload
from instar.base.errors import ApiError
from instar.base.supervision import SupervisedTask, rest
from instar.server.registry.controllers.garbage.foreign_owners import ForeignOwnerSearch
from instar.server.registry.controllers.garbage.object_facts import (
    FactsOfObjects,
    mentioned_uids,
    read_object,
)
from instar.server.registry.controllers.garbage.owner_graph import (
    OwnerGraphNode,
    OwnerIndex,
    OwnerReference,
)
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.lazy_entry import load_entries
from instar.wire.storage.store import StoreError
from instar.wire.storage.watchcache.collection import Change, CollectionReloaded

log = logging.getLogger(__name__)
_MENTION = b'"ownerReferences":[{'
DELETED = b'"deletionTimestamp":"'
_FEW = 100
"""Objects put into the queue in one step."""
_READ = 500
"""Objects examined together, which may have to be read from disk."""
_AGAIN_SECONDS = 1.0
_PART = "garbage-collector"


class OwnerGraph:
    """The owner references of all stored objects, and which objects to examine."""

    def __init__(
        self, context: Context, catalog: Catalog, enqueue: Callable[[OwnerGraphNode], None]
    ) -> None:
        self._context, self._catalog, self._add = context, catalog, enqueue
        self.owners = OwnerIndex()
        self.facts = FactsOfObjects()
        self.strays = ForeignOwnerSearch(context, catalog)
        self._followed: dict[str, Resource] = {}
        self._unread: dict[OwnerGraphNode, None] = {}
        """Large objects with references that are not in the index yet."""
        self._waiting: dict[OwnerGraphNode, str] = {}
        """Owners in foreground deletion that wait for dependents, and their uids."""
        self._waited_for: dict[str, OwnerGraphNode] = {}
        self._looking: SupervisedTask | None = None
        self._later_tasks: set[SupervisedTask] = set()

    def start(self) -> None:
        for resource in self._catalog.resources():
            self._follow(resource)
        self._catalog.on_opened(self._opened)
        self._catalog.on_closed(self._leave)
        self._context.backend.cache.on_reset(self.start_over)

    async def stop(self) -> None:
        self._stop_looking()
        for kept in tuple(self._later_tasks):
            await kept.stop()

    # Queries ----------------------------------------------------------------------------------

    def found(self, node: OwnerGraphNode) -> tuple[Resource, CacheEntry] | None:
        resource = self._followed.get(node.prefix)
        entry = None if resource is None else resource.objects.entries.get(node.suffix)
        return None if resource is None or entry is None else (resource, entry)

    async def read(self, node: OwnerGraphNode) -> None:
        """Read the references of a large object. If it changes meanwhile, it is queued again."""
        if node not in self._unread:
            return
        found = self.found(node)
        if found is None:
            self._unread.pop(node, None)
            return
        read = await self.facts.read(node, found[1])
        if self.found(node) == found:
            self._take(node, read.references)

    async def read_all(self) -> None:
        """Read all large objects: callers that need all dependents call this first."""
        for node in list(self._unread):
            await self.read(node)

    def wait_for_dependents(self, node: OwnerGraphNode, uid: str) -> None:
        """Have the owner queued when the last dependent that it waits for is gone."""
        self._waiting[node], self._waited_for[uid] = uid, node

    def waits_no_longer(self, node: OwnerGraphNode) -> None:
        uid = self._waiting.pop(node, None)
        if uid is not None:
            self._waited_for.pop(uid, None)

    async def is_waiting(self, node: OwnerGraphNode) -> bool:
        """Return whether the object itself is in foreground deletion."""
        found = self.found(node)
        if found is None or DELETED not in found[1].json():
            return False
        return (await self.facts.of(node, found[1])).waits

    async def look_at_all(self) -> None:
        """Examine all objects once at the start, by their bytes, so that few must be parsed."""
        for resource in list(self._followed.values()):
            await self._look_at(resource)

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
            self._later(partial(self._look_at, resource))

    def _leave(self, resource: Resource) -> None:
        """Forget a closed collection; it is examined again if it is served again."""
        prefix = resource.objects.prefix
        self._followed.pop(prefix, None)
        for suffix in resource.objects.entries:
            self._forget(OwnerGraphNode(prefix, suffix))

    def _changed(self, prefix: str, change: Change[CacheEntry]) -> None:
        new = change.new
        if new is not None and not self.owners and not _is_concerned(new):
            return  # most writes, and all of them where no object has owners
        node = OwnerGraphNode(prefix, change.suffix)
        if new is None:
            self._departed(node, change.old)
        elif self.owners.references(node) or _MENTION in new.json():
            self._look_into_references(node, new)
        elif DELETED in new.json():
            self._add(node)

    def _look_into_references(self, node: OwnerGraphNode, entry: CacheEntry) -> None:
        if offload.is_small(entry.size):
            self._take(node, self.facts.read_now(node, entry).references)
        else:
            self._unread[node] = None
        self._add(node)

    def _take(self, node: OwnerGraphNode, references: tuple[OwnerReference, ...]) -> None:
        self._unread.pop(node, None)
        before = self.owners.references(node)
        if before != references:
            self.owners.put(node, references)
            self._wake_owners(before)

    def _departed(self, node: OwnerGraphNode, old: CacheEntry | None) -> None:
        before = self._forget(node)
        if old is not None and any(map(self.owners.has_dependents, mentioned_uids(old.json()))):
            if offload.is_small(old.size):
                self._orphaned(read_object(old.json()).facts.uid)
            else:
                self._later(partial(self._orphaned_by_large, old.json()))
        self._wake_owners(before)

    def _forget(self, node: OwnerGraphNode) -> tuple[OwnerReference, ...]:
        self._unread.pop(node, None)
        self.facts.forget(node)
        self.strays.forget(node)
        self.waits_no_longer(node)
        return self.owners.remove(node)

    async def _orphaned_by_large(self, data: bytes) -> None:
        self._orphaned((await offload.run_in_thread(partial(read_object, data))).facts.uid)

    def _orphaned(self, uid: str) -> None:
        if self.owners.has_dependents(uid):
            self.strays.note_absent(uid)
            self._enqueue(self.owners.dependents(uid))

    def _wake_owners(self, lost: Iterable[OwnerReference]) -> None:
        """Queue owners in foreground deletion that waited for this dependent as the last."""
        for reference in lost:
            owner = self._waited_for.get(reference.uid)
            if owner is not None and not self.owners.is_blocked(reference.uid):
                self._add(owner)

    def _enqueue(self, nodes: Sequence[OwnerGraphNode]) -> None:
        if len(nodes) > _FEW:
            self._later(partial(self._enqueue_many, nodes))
        for node in nodes[:_FEW]:
            self._add(node)

    async def _enqueue_many(self, nodes: Sequence[OwnerGraphNode]) -> None:
        breaks = offload.Breaks()
        for node in nodes[_FEW:]:
            self._add(node)
            await breaks.between()

    def _later(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        kept = self._context.supervision.keep(_PART, run)
        self._later_tasks.add(kept)
        kept.task.add_done_callback(lambda _: self._later_tasks.discard(kept))

    def start_over(self) -> None:
        self.owners.clear()
        self.facts.clear()
        self._unread.clear()
        self._waiting.clear()
        self._waited_for.clear()
        self._stop_looking()
        self._looking = self._context.supervision.keep(_PART, self._look_until_seen)

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _look_until_seen(self) -> None:
        while True:
            try:
                await self.look_at_all()
                return
            except (ApiError, StoreError) as error:
                log.warning("garbage collector cannot read the objects yet, will retry: %s", error)
                await rest(_AGAIN_SECONDS)

    async def _look_at(self, resource: Resource) -> None:
        try:
            await self._look_at_objects(resource)
        except CollectionReloaded:
            return  # then everything is started over

    async def _look_at_objects(self, resource: Resource) -> None:
        objects, breaks = resource.objects, offload.Breaks()
        async for part in objects.slices():
            for start in range(0, len(part), _READ):
                some = part[start : start + _READ]
                # Later changes arrive as change events.
                current = [each for name, each in some if objects.entries.get(name) is each]
                for entry in load_entries(current):
                    self._look_into(objects.prefix, entry)
                    await breaks.between()

    def _look_into(self, prefix: str, entry: CacheEntry) -> None:
        raw = entry.json()
        node = OwnerGraphNode(prefix, entry.suffix)
        if _MENTION in raw:
            self._look_into_references(node, entry)
        elif DELETED in raw:
            self._add(node)


def _is_concerned(entry: CacheEntry) -> bool:
    raw = entry.json()
    return _MENTION in raw or DELETED in raw
