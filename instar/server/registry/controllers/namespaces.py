"""Namespace controllers: one creates the initial namespaces, one empties terminating ones.

``lifecycle/controller_setup.py`` starts both. kube-apiserver creates the initial namespaces itself,
so they exist even if no controller is enabled; without the second controller a deleted namespace
stays Terminating until a client finalizes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter

from instar.base import errors, offload
from instar.base.json_values import Object
from instar.kube.access.attributes import AUTHENTICATED, OURSELVES, Attributes, User
from instar.server.registry.admission.plugins.namespace_lifecycle import is_terminating
from instar.server.registry.controllers.manager_lease import ManagerLease
from instar.server.registry.controllers.namespace_conditions import Remains, with_conditions
from instar.server.registry.controllers.queue import Backoff, Queue
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.backend import Objects
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.make_entry import put_server_object
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
_BACKOFF = Backoff(_RETRY_SECONDS, 30.0)
_REFUSED_DELAYS = Backoff(_RETRY_SECONDS, 30.0)
"""Between attempts that admission refuses; while finalizers are waited for, attempts are cheap and
come every half second."""


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
                log.warning("cannot create namespace %s, will retry: %s", name, error)
                await asyncio.sleep(_RETRY_SECONDS)


class NamespaceController:
    """Empties and removes terminating namespaces."""

    def __init__(
        self, context: Context, catalog: Catalog, namespaces: Resource, manager: ManagerLease
    ) -> None:
        self._context = context
        self._catalog = catalog
        self._namespaces = namespaces
        self._manager = manager
        self._refused: dict[str, int] = {}
        """Namespace → attempts in a row in which admission refused a deletion."""
        self._leaving: Queue[str] = Queue(
            "terminating namespace", self._empty, _BACKOFF, supervision=context.supervision
        )

    @property
    def _objects(self) -> Objects:
        return self._namespaces.objects

    def start(self) -> None:
        self._objects.observers.append(self._changed)
        self._context.backend.cache.on_reset(self._look_at_all)
        self._manager.on_released(self._released)
        self._look_at_all()

    async def stop(self) -> None:
        await self._leaving.stop()

    async def _released(self) -> None:
        self._look_at_all()

    def _changed(self, change: Change[CacheEntry]) -> None:
        if change.new is None:
            self._refused.pop(change.suffix, None)
        elif not self._leaving.holds(change.suffix):
            self._look(change.new)

    def _look_at_all(self) -> None:
        for entry in list(self._objects.entries.values()):
            self._look(entry)

    def _look(self, entry: CacheEntry) -> None:
        if is_terminating(entry):
            self._leaving.add(entry.suffix)

    async def _empty(self, name: str) -> float | None:
        if self._manager.is_held or not self._is_leaving(name):
            return None
        failures = await self._purge(name)
        await self._context.backend.consistent()
        remains = await self._remains(name, failures)
        if not remains.objects and await self._finalize(name):
            return None
        await self._show(name, remains)
        refused = self._refused[name] = self._refused.get(name, 0) + 1 if failures else 0
        return _REFUSED_DELAYS.after(refused) if refused else _RETRY_SECONDS

    def _is_leaving(self, name: str) -> bool:
        """Check again: another replica may have finished, and the namespace may exist anew."""
        entry = self._objects.entries.get(name)
        return entry is not None and is_terminating(entry)

    async def _purge(self, name: str) -> list[str]:
        """Delete everything in the namespace, pods before all else as upstream. Return why
        deletions were refused; what is refused keeps the namespace."""
        namespaced = [one for one in self._catalog.resources() if one.serving.namespaced]
        pods = self._catalog.builtin("", "pods")
        failures = await self._purge_all(name, [pods])
        if next(pods.objects.suffixes(f"{name}/"), None) is None:
            failures += await self._purge_all(name, [one for one in namespaced if one is not pods])
        return failures

    async def _purge_all(self, name: str, resources: list[Resource]) -> list[str]:
        failures: list[str] = []
        for resource in resources:
            if not self._is_leaving(name):
                break
            serving = resource.serving
            target = Target(resource, serving, resource.codec, serving.storage, name)
            attributes = self._delete_attributes(target)
            try:
                await purge(self._context.backend, self._context, target, attributes)
            except errors.ApiError as error:
                failures.append(str(error))
        return failures

    async def _remains(self, name: str, failures: list[str]) -> Remains:
        held: dict[str, list[CacheEntry]] = {}
        for resource in self._catalog.resources():
            serving, objects = resource.serving, resource.objects
            if serving.namespaced and not serving.stored_in:
                entries = [objects.entries[suffix] for suffix in objects.suffixes(f"{name}/")]
                if entries:
                    held[f"{serving.plural}.{serving.group}"] = entries
        size = sum(entry.size for entries in held.values() for entry in entries)
        return await offload.run(size, lambda: _counted(held, failures))

    async def _show(self, name: str, remains: Remains) -> None:
        """Store what holds the namespace in its conditions, and log it when it has changed."""
        entry = self._objects.entries.get(name)
        if entry is None or not is_terminating(entry):
            return
        obj = entry.decode()
        status = obj.get("status") or {}
        new = with_conditions(status, remains, self._context.timestamp())
        if new == status:
            return
        for failure in remains.failures:
            log.warning("cannot empty namespace %s, a deletion was refused: %s", name, failure)
        obj["status"] = new
        await put_server_object(self._context.backend, self._namespaces, name, obj, entry.revision)

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
            await put_server_object(
                self._context.backend, self._namespaces, name, obj, entry.revision
            )
        return False


def _counted(held: dict[str, list[CacheEntry]], failures: list[str]) -> Remains:
    finalizers: Counter[str] = Counter()
    for entries in held.values():
        for entry in entries:
            with contextlib.suppress(UnreadableEntry):
                finalizers.update(entry.decode()["metadata"].get("finalizers") or ())
    return Remains(
        Counter({name: len(entries) for name, entries in held.items()}), finalizers, failures
    )
