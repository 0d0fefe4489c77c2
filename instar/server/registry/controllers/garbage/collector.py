"""Garbage collector: acts on the verdicts of ``owner_graph.py`` about the objects of ``graph.py``.

Created by ``server/lifecycle/controller_setup.py``. Writes are guarded by uid or revision, so a
second collector would do no harm; on a shared store only the leader works. The collector works like
upstream's controller, but without a delay. Loops over many references or dependents yield to the
event loop.
"""

from __future__ import annotations

from collections.abc import Iterable

from instar.base import offload
from instar.kube.api.names import parse_group_version
from instar.server.registry.controllers.garbage.graph import OwnerGraph
from instar.server.registry.controllers.garbage.object_facts import ObjectFacts
from instar.server.registry.controllers.garbage.owner_graph import (
    FOREGROUND,
    ORPHAN,
    OwnerGraphNode,
    OwnerReference,
    OwnerStanding,
    OwnerVerdict,
    judge,
)
from instar.server.registry.controllers.garbage.writer import (
    drop_finalizer,
    drop_references,
    remove,
    unblock,
)
from instar.server.registry.controllers.manager_lease import Duty
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry

_BACKOFF = Backoff(0.1, 30.0)
_AT_ONCE = 50
"""Objects deleted concurrently: they share transactions and leave time for requests."""
_UNKNOWN_SECONDS = 30.0


class GarbageCollector:
    """Maintains the owner graph and deletes or releases dependents."""

    def __init__(self, context: Context, catalog: Catalog, duty: Duty) -> None:
        self._context, self._catalog, self._duty = context, catalog, duty
        self._work: Queue[OwnerGraphNode] = Queue(
            "object",
            self._reconcile,
            _BACKOFF,
            max_concurrent=_AT_ONCE,
            supervision=context.supervision,
        )
        self._graph = OwnerGraph(context, catalog, self._work.add)
        self._owners = self._graph.owners

    def start(self) -> None:
        """Start before leader election begins, because being elected starts the work."""
        self._graph.start()
        self._duty.on_elected(self._graph.look_at_all)

    async def stop(self) -> None:
        await self._graph.stop()
        await self._work.stop()

    async def _reconcile(self, node: OwnerGraphNode) -> float | None:
        found = self._graph.found(node)
        if found is None or found[0].closed or not self._duty.leads:
            return None
        resource, entry = found
        await self._graph.read(node)
        facts = await self._graph.facts.of(node, entry)
        if not facts.involved.name:
            return None  # it cannot be read
        if facts.deleted:
            await self._let_go(resource, node, facts)
            return None
        if not self._owners.references(node):
            return None
        return await self._judge(resource, node, entry, facts)

    async def _let_go(self, resource: Resource, node: OwnerGraphNode, facts: ObjectFacts) -> None:
        """Finish an owner's deletion: release its dependents (orphan), or wait for them
        (foreground)."""
        uid, breaks = facts.uid, offload.Breaks()
        if ORPHAN in facts.finalizers:
            await self._graph.read_all()
            for dependent in self._owners.dependents(uid):
                await self._release(dependent, {uid})
                await breaks.between()
            await drop_finalizer(self._context, resource, node.suffix, ORPHAN)
        elif FOREGROUND in facts.finalizers:
            self._graph.wait_for_dependents(node, uid)
            await self._graph.read_all()
            await self._enqueue_dependents(uid)
            await self._context.backend.consistent()
            if not self._owners.is_blocked(uid):
                self._graph.waits_no_longer(node)
                await drop_finalizer(self._context, resource, node.suffix, FOREGROUND)

    async def _enqueue_dependents(self, uid: str) -> None:
        """Queue the dependents, except those that wait for dependents themselves, as upstream: in
        a circle they would queue each other for ever."""
        breaks = offload.Breaks()
        for dependent in self._owners.dependents(uid):
            if not await self._graph.is_waiting(dependent):
                self._work.add(dependent)
            await breaks.between()

    async def _judge(
        self, resource: Resource, node: OwnerGraphNode, entry: CacheEntry, facts: ObjectFacts
    ) -> float | None:
        namespace, uid = facts.involved.namespace, facts.uid
        references = self._owners.references(node)
        found = await self._standings(references, namespace)
        if OwnerStanding.DANGLING in found.values():
            # The cache may be behind, so confirm that an owner does not exist.
            await self._context.backend.consistent()
            found = await self._standings(references, namespace)
        await self._ask_for_strays(node, facts, found)
        now = resource.objects.entries.get(node.suffix)
        if now is None or now.revision != entry.revision:
            return 0.0
        match judge(found.values(), has_dependents=self._owners.has_dependents(uid)):
            case OwnerVerdict.UNDECIDED:
                return _UNKNOWN_SECONDS
            case OwnerVerdict.RELEASE:
                lost = {one.uid for one, is_ in found.items() if is_ is not OwnerStanding.SOLID}
                await self._release(node, lost)
            case OwnerVerdict.DELETE_IN_FOREGROUND:
                if await self._has_waiting_dependents(uid):
                    await unblock(self._context, resource, node.suffix)
                await remove(self._context, resource, node.suffix, uid, "Foreground")
            case OwnerVerdict.DELETE:
                await remove(self._context, resource, node.suffix, uid, _own_policy(facts))
        return None

    async def _standings(
        self, references: Iterable[OwnerReference], namespace: str
    ) -> dict[OwnerReference, OwnerStanding]:
        breaks = offload.Breaks()
        found: dict[OwnerReference, OwnerStanding] = {}
        for reference in references:
            found[reference] = await self._standing(reference, namespace)
            await breaks.between()
        return found

    async def _standing(self, reference: OwnerReference, namespace: str) -> OwnerStanding:
        resource = self._resource_of(reference)
        if resource is None:
            return OwnerStanding.UNKNOWN
        place = _place(resource, reference, namespace)
        entry = resource.objects.entries.get(place)
        if entry is None:
            stray = resource.serving.namespaced and not namespace
            return OwnerStanding.STRAY if stray else OwnerStanding.DANGLING
        owner = await self._graph.facts.of(OwnerGraphNode(resource.objects.prefix, place), entry)
        if owner.uid != reference.uid:
            return OwnerStanding.DANGLING
        return OwnerStanding.WAITING if owner.waits else OwnerStanding.SOLID

    def _resource_of(self, reference: OwnerReference) -> Resource | None:
        try:
            group = parse_group_version(reference.api_version).group
        except ValueError:
            return None
        return self._catalog.of_kind(group, reference.kind)

    async def _ask_for_strays(
        self, node: OwnerGraphNode, facts: ObjectFacts, found: dict[OwnerReference, OwnerStanding]
    ) -> None:
        breaks = offload.Breaks()
        for reference, standing in found.items():
            if standing in (OwnerStanding.DANGLING, OwnerStanding.STRAY):
                owners = self._resource_of(reference)
                if owners is not None:
                    self._graph.strays.ask(owners, node, facts.involved, reference)
            await breaks.between()

    async def _release(self, node: OwnerGraphNode, uids: set[str]) -> None:
        found = self._graph.found(node)
        if found is not None and any(one.uid in uids for one in self._owners.references(node)):
            await drop_references(self._context, found[0], node.suffix, uids)

    async def _has_waiting_dependents(self, uid: str) -> bool:
        breaks = offload.Breaks()
        for dependent in self._owners.dependents(uid):
            if await self._graph.is_waiting(dependent):
                return True
            await breaks.between()
        return False


def _place(resource: Resource, reference: OwnerReference, namespace: str) -> str:
    """Return the owner's key suffix: it must be in the dependent's namespace or cluster-scoped."""
    inside = namespace if resource.serving.namespaced else ""
    return f"{inside}/{reference.name}" if inside else reference.name


def _own_policy(facts: ObjectFacts) -> str:
    if ORPHAN in facts.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in facts.finalizers else "Background"
