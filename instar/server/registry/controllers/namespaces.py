"""Namespace controllers: one creates the initial namespaces, one empties terminating ones.

``lifecycle/controller_setup.py`` starts both. kube-apiserver creates the initial namespaces itself,
so these are there without any controller; without the other one a deleted namespace stays
Terminating until a client finalizes it.
"""

from __future__ import annotations

import asyncio
import logging

from instar.base import errors
from instar.base.json_values import Object
from instar.kube.access.attributes import AUTHENTICATED, OURSELVES, Attributes, User
from instar.server.registry.admission.plugins.namespace_lifecycle import is_terminating
from instar.server.registry.controllers.queue import Delays, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.backend import Objects
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.make_entry import put_own
from instar.server.registry.verbs.delete_many import purge
from instar.server.registry.verbs.write import create
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
INITIAL = ("default", "kube-system", "kube-public", "kube-node-lease")
_USER = User(
    "system:serviceaccount:kube-system:namespace-controller",
    ("system:serviceaccounts", "system:serviceaccounts:kube-system", AUTHENTICATED),
)
_RETRY_SECONDS = 0.5
_OPTIONS = WriteOptions(manager="kube-apiserver")
_DELAYS = Delays(_RETRY_SECONDS, _RETRY_SECONDS)


async def create_namespace(context: Context, namespaces: Resource, name: str) -> None:
    serving, codec = namespaces.serving, namespaces.codec
    obj: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    serving.strategy.decode(obj, serving.storage)
    target = Target(namespaces, serving, codec, serving.storage)
    await create(context, target, obj, _OPTIONS)


class InitialNamespaces:
    """Creates the namespaces that every cluster has from the start."""

    def __init__(self, context: Context, namespaces: Resource) -> None:
        self._context, self._namespaces = context, namespaces

    async def start(self) -> None:
        for name in INITIAL:
            await self._make_sure_of(name)

    def stop(self) -> None:
        """Nothing of it runs after its start."""

    async def _make_sure_of(self, name: str) -> None:
        while name not in self._namespaces.objects.entries:
            try:
                await create_namespace(self._context, self._namespaces, name)
            except errors.AlreadyExists:
                return  # another replica, starting with us, was first
            except errors.ServiceUnavailable as error:
                log.warning("namespace %s is not there yet: %s", name, error)
                await asyncio.sleep(_RETRY_SECONDS)


class NamespaceController:
    """Empties and removes terminating namespaces."""

    def __init__(self, context: Context, catalog: Catalog, namespaces: Resource) -> None:
        self._context = context
        self._catalog = catalog
        self._namespaces = namespaces
        self._leaving: Queue[str] = Queue(
            "terminating namespace", self._empty, _DELAYS, supervision=context.supervision
        )

    @property
    def _objects(self) -> Objects:
        return self._namespaces.objects

    def start(self) -> None:
        self._objects.observers.append(self._changed)
        self._context.backend.cache.on_reset(self._look_at_all)
        self._look_at_all()

    async def stop(self) -> None:
        await self._leaving.stop()

    def _changed(self, change: Change[CacheEntry]) -> None:
        if change.new is not None:
            self._look(change.new)

    def _look_at_all(self) -> None:
        for entry in list(self._objects.entries.values()):
            self._look(entry)

    def _look(self, entry: CacheEntry) -> None:
        if is_terminating(entry):
            self._leaving.add(entry.suffix)

    async def _empty(self, name: str) -> float | None:
        if not self._is_leaving(name):
            return None
        await self._purge(name)
        await self._context.backend.consistent()
        gone = not self._has_objects(name) and await self._finalize(name)
        return None if gone else _RETRY_SECONDS

    def _is_leaving(self, name: str) -> bool:
        """Check again: another replica may have finished, and the namespace may exist anew."""
        entry = self._objects.entries.get(name)
        return entry is not None and is_terminating(entry)

    async def _purge(self, name: str) -> None:
        """Delete everything in the namespace."""
        for resource in self._catalog.resources():
            serving = resource.serving
            if not serving.namespaced or not self._is_leaving(name):
                continue
            target = Target(resource, serving, resource.codec, serving.storage, name)
            try:
                await purge(
                    self._context.backend, self._context, target, self._delete_attributes(target)
                )
            except errors.ApiError as error:
                # Admission denied the delete: keep the objects and the namespace.
                log.warning(
                    "cannot empty namespace %s, admission denied deleting its %s: %s",
                    name,
                    serving.plural,
                    error,
                )

    def _delete_attributes(self, target: Target) -> Attributes:
        """Return request attributes for admission; without admission plugins, the server's own."""
        if not self._context.admission.is_configured:
            return OURSELVES
        serving = target.serving
        return Attributes(
            _USER,
            "deletecollection",
            serving.group,
            target.version.name,
            serving.plural,
            namespace=target.namespace,
        )

    def _has_objects(self, name: str) -> bool:
        return any(
            resource.serving.namespaced
            and next(resource.objects.suffixes(f"{name}/"), None) is not None
            for resource in self._catalog.resources()
        )

    async def _finalize(self, name: str) -> bool:
        """Remove our finalizer; the namespace is deleted when no other is left."""
        entry = self._objects.entries.get(name)
        if entry is None or not is_terminating(entry):
            return True
        obj = entry.decode()
        spec = obj.setdefault("spec", {})
        finalizers = [item for item in spec.get("finalizers") or () if item != "kubernetes"]
        if not finalizers and not obj["metadata"].get("finalizers"):
            await self._context.backend.remove(self._objects, name, entry.revision)
            return True
        if finalizers != spec.get("finalizers"):
            spec["finalizers"] = finalizers
            await put_own(self._context.backend, self._namespaces, name, obj, entry.revision)
        return False
