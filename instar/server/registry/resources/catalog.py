"""Catalog of served resources: maps (group, plural) to a ``Resource`` and follows CRD changes.

Routing, discovery, OpenAPI and the controllers look resources up here, so that they cannot
disagree. Built-in resources are in it from the start; a changed CRD replaces the ``Serving`` of its
resource as a whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from instar.base import offload
from instar.base.json_values import same_json
from instar.kube.api.crd import GROUP, Crd, read_crd
from instar.server.registry.resources.crd_text import around_equal_spec
from instar.server.registry.resources.resource import Resource, open_resource
from instar.server.registry.resources.serving import Serving
from instar.server.registry.resources.stored_schemas import StoredSchemas
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
ReadCrd = Callable[[CacheEntry], dict[str, Any]]
MakeServing = Callable[[Crd], Serving]
BackendOf = Callable[[str, str], Backend]
"""(group, plural) → the backend with the objects of a built-in kind."""


class Catalog:
    """All resources that the server knows."""

    def __init__(
        self,
        backend: Backend,
        builtins: Iterable[Serving],
        read: ReadCrd,
        make_serving: MakeServing,
        backend_of: BackendOf | None = None,
        *,
        shows_builtins: bool = True,
    ) -> None:
        """``backend_of`` finds the backend of a built-in kind where that is not ``backend``.
        Without ``shows_builtins`` only custom resources are routed and shown to clients; the server
        itself uses built-in kinds through ``builtin`` and ``of_kind``."""
        self.generation = 0
        """Incremented with every change that discovery or OpenAPI shows."""
        self.retargeted = 0
        """Incremented when a path may have to be routed to another resource."""
        self._backend = backend
        self._read = read
        self._make_serving = make_serving
        found = backend_of or (lambda group, plural: backend)
        self._builtins = {
            (serving.group, serving.plural): open_resource(
                serving, found(serving.group, serving.plural)
            )
            for serving in builtins
        }
        self._public = self._builtins if shows_builtins else {}
        self._customs: dict[str, Resource] = {}
        self._groups: dict[str, dict[str, Resource]] = {}
        """Custom resources by group and CRD name."""
        self._builtin_groups: dict[str, list[Resource]] = {}
        for resource in self._public.values():
            self._builtin_groups.setdefault(resource.serving.group, []).append(resource)
        self._kinds: dict[tuple[str, str], Resource] = {}
        for resource in self._builtins.values():
            self._kinds.setdefault((resource.serving.group, resource.serving.kind), resource)
        self._opened: list[Callable[[Resource], None]] = []
        self._closed: list[Callable[[Resource], None]] = []
        self._regrouped: list[Callable[[str], None]] = []
        self._schemas: dict[str, StoredSchemas] = {}
        self._loaded = asyncio.Event()

    @property
    def loading(self) -> bool:
        """Whether CRDs in the store may not be loaded yet."""
        return not self._loaded.is_set()

    async def loaded(self) -> None:
        """Wait until every CRD that was stored at the start is loaded."""
        await self._loaded.wait()

    async def follow(self, crds: Resource) -> None:
        """Follow the changes of CRDs and load the stored ones, in slices: ten thousand take
        seconds, and other requests are served meanwhile."""
        crds.objects.listeners.insert(0, self._changed)
        self._backend.cache.on_reset(lambda: self._reload(crds))
        breaks = offload.Breaks()
        for name in list(crds.objects.entries):
            entry = crds.objects.entries.get(name)
            if entry is not None:
                self._take(entry)
            await breaks.between()
        self._loaded.set()

    def builtin(self, group: str, plural: str) -> Resource:
        return self._builtins[(group, plural)]

    def is_builtin_group(self, group: str) -> bool:
        return group in self._builtin_groups

    def is_independent_of_crds(self, group: str, plural: str) -> bool:
        """Return whether responses about such objects do not depend on any CRD."""
        return (group, plural) in self._builtins and group != GROUP

    def find(self, group: str, plural: str) -> Resource | None:
        """Return the resource, whether or not its CRD is established."""
        found = self._public.get((group, plural))
        return found if found is not None else self._customs.get(f"{plural}.{group}")

    def of_kind(self, group: str, kind: str) -> Resource | None:
        """Return the resource of this kind."""
        found = self._kinds.get((group, kind))
        return None if found is None or found.closed else found

    def on_opened(self, listener: Callable[[Resource], None]) -> None:
        """Have ``listener`` called with each resource that is served from now on."""
        self._opened.append(listener)

    def on_closed(self, listener: Callable[[Resource], None]) -> None:
        """Have ``listener`` called with each resource that is no longer served. A listener must
        drop its references, else the schemas of deleted CRDs stay in memory."""
        self._closed.append(listener)

    def custom(self, crd_name: str) -> Resource | None:
        return self._customs.get(crd_name)

    def resources(self) -> list[Resource]:
        return [*self._builtins.values(), *self._customs.values()]

    def customs(self) -> list[Resource]:
        return list(self._customs.values())

    def groups(self) -> set[str]:
        return {*self._builtin_groups, *self._groups}

    def members(self, group: str) -> list[Resource]:
        return [*self._builtin_groups.get(group, ()), *self.customs_of(group)]

    def customs_of(self, group: str) -> list[Resource]:
        return list(self._groups.get(group, {}).values())

    def stored(self, crd_name: str) -> StoredSchemas | None:
        """Return the stored schemas of a CRD."""
        return self._schemas.get(crd_name)

    def on_group_changed(self, listener: Callable[[str], None]) -> None:
        """Have ``listener`` called with the group of each CRD that changes visibly for clients."""
        self._regrouped.append(listener)

    def reroute(self, group: str) -> None:
        """Note that another server answers for a version of the group from now on, or this one
        again."""
        self.retargeted += 1
        self._notify_group(group)

    def redocument(self, group: str) -> None:
        """Note that discovery or OpenAPI of a group are to be made anew."""
        self._notify_group(group)

    def _changed(self, change: Change[CacheEntry]) -> None:
        if change.new is None:
            self._remove(change.suffix)
        else:
            self._take(change.new)

    def _reload(self, crds: Resource) -> None:
        for resource in self.resources():
            resource.reset()
        for name in set(self._customs) - set(crds.objects.entries):
            self._remove(name)
        for entry in crds.objects.entries.values():
            self._take(entry)

    def _take(self, entry: CacheEntry) -> None:
        """Serve a stored CRD. One that cannot be read is logged and not served, and the others
        stay."""
        try:
            self._put(entry)
        except Exception:
            log.exception("cannot read the stored CRD %s, its objects are not served", entry.suffix)
            self._remove(entry.suffix)

    def _put(self, entry: CacheEntry) -> None:
        known = self._customs.get(entry.suffix)
        if known is not None:
            around = around_equal_spec(self._schemas[entry.suffix].entry, entry)
            if around is not None:
                if not self._note(known, entry, around):
                    self._open(known.crd.without_spec_changes(around), entry, known)
                return
        obj = self._read(entry)
        crd = read_crd(obj)
        known = self._customs.get(crd.name)
        if known is not None:
            before = self._read(self._schemas[crd.name].entry)
            if same_json(before.get("spec"), obj.get("spec")) and self._note(known, entry, obj):
                return
        self._open(crd, entry, known)

    def _note(self, known: Resource, entry: CacheEntry, obj: dict[str, Any]) -> bool:
        """Take over a CRD written again with the same spec. Return False if its objects have to be
        served differently nevertheless."""
        before, crd = known.crd, known.crd.without_spec_changes(obj)
        identity = before.name, before.uid, before.stored_plural
        if (crd.name, crd.uid, crd.stored_plural) != identity:
            return False
        self._schemas[crd.name].entry = entry
        known.note(crd)
        self._notify_group(crd.group)
        if is_served(before) and not is_served(crd):
            self.retargeted += 1
        return True

    def _open(self, crd: Crd, entry: CacheEntry, known: Resource | None) -> None:
        schemas = StoredSchemas(entry, self._read)
        serving = self._make_serving(schemas.behind(crd))
        self._schemas[crd.name] = schemas
        self._notify_group(crd.group)
        if known is not None and known.serving.prefix == serving.prefix:
            self._forget_kind(known)
            self.retargeted += 1
            known.swap(serving)
            self._kinds[(serving.group, serving.kind)] = known
            return
        if known is not None:
            self._close(known)
        resource = self._customs[crd.name] = open_resource(serving, self._backend)
        self._groups.setdefault(crd.group, {})[crd.name] = resource
        self._kinds[(serving.group, serving.kind)] = resource
        for listener in self._opened:
            listener(resource)

    def _remove(self, name: str) -> None:
        resource = self._customs.pop(name, None)
        self._schemas.pop(name, None)
        self.generation += 1
        if resource is not None:
            self._notify_group(resource.crd.group)
            self._close(resource)

    def _notify_group(self, group: str) -> None:
        self.generation += 1
        for listener in self._regrouped:
            listener(group)

    def _close(self, resource: Resource) -> None:
        self.retargeted += 1
        resource.close()
        self._forget_kind(resource)
        self._forget_member(resource)
        for listener in self._closed:
            listener(resource)

    def _forget_member(self, resource: Resource) -> None:
        group, name = resource.crd.group, resource.crd.name
        members = self._groups.get(group, {})
        if members.get(name) is resource:
            del members[name]
            if not members:
                del self._groups[group]

    def _forget_kind(self, resource: Resource) -> None:
        kind = (resource.serving.group, resource.serving.kind)
        if self._kinds.get(kind) is resource:
            del self._kinds[kind]


def is_served(crd: Crd) -> bool:
    """Return whether requests for the CRD's objects are answered."""
    return crd.is_true("NamesAccepted") or crd.is_true("Established")
