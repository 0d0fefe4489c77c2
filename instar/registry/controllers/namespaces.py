"""Namespaces: who may put an object where, and how a namespace goes with all it holds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from instar import errors
from instar.errors import ApiError
from instar.plain import Object
from instar.registry.resources.catalog import Catalog
from instar.registry.resources.context import Context
from instar.registry.resources.resource import Resource, Target
from instar.registry.stored.backend import Backend, Objects
from instar.registry.stored.entry import Entry, Unreadable
from instar.registry.stored.writing import put_own
from instar.registry.verbs.delete import purge
from instar.storage.cache import Change
from instar.storage.keys import collection_prefix
from instar.storage.store import Stale

log = logging.getLogger(__name__)
INITIAL = ("default", "kube-system", "kube-public", "kube-node-lease")
_RETRY_SECONDS = 0.5


def namespace_check(backend: Backend, *, strict: bool) -> Callable[[str], None]:
    """What creating an object asks first: is there such a namespace, and is it staying?"""
    if not strict:
        return lambda namespace: None
    prefix = collection_prefix("", "namespaces")

    def check(namespace: str) -> None:
        entry = backend.collection(prefix).entries.get(namespace)
        if entry is None:
            raise errors.not_found("", "namespaces", namespace)
        if _terminating(entry):
            raise errors.Forbidden(
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated",
                details={
                    "causes": [
                        {
                            "reason": "NamespaceTerminating",
                            "message": f"namespace {namespace} is being terminated",
                            "field": "metadata.namespace",
                        }
                    ]
                },
            )

    return check


class NamespaceController:
    """Empties and removes terminating namespaces; makes the initial ones."""

    def __init__(self, context: Context, catalog: Catalog, namespaces: Resource) -> None:
        self._context = context
        self._catalog = catalog
        self._namespaces = namespaces
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def _objects(self) -> Objects:
        return self._namespaces.objects

    async def start(self) -> None:
        for name in INITIAL:
            await self._make_sure_of(name)
        self._objects.listeners.append(self._changed)
        self._context.backend.cache.on_reset(self._look_at_all)
        self._look_at_all()

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _changed(self, change: Change[Entry]) -> None:
        if change.new is not None:
            self._look(change.new)

    def _look_at_all(self) -> None:
        for entry in list(self._objects.entries.values()):
            self._look(entry)

    def _look(self, entry: Entry) -> None:
        name = entry.suffix
        if name not in self._tasks and _terminating(entry):
            task = asyncio.get_running_loop().create_task(self._empty(name))
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _make_sure_of(self, name: str) -> None:
        while name not in self._objects.entries:
            try:
                await self._make(name)
            except Stale:
                return  # another replica, starting with us, was first
            except errors.ServiceUnavailable as error:
                log.warning("namespace %s is not there yet: %s", name, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _make(self, name: str) -> None:
        serving = self._namespaces.serving
        obj: Object = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "uid": self._context.new_uid(),
                "creationTimestamp": self._context.timestamp(),
            },
        }
        serving.strategy.prepare_create(obj, serving.storage)
        await put_own(self._context.backend, self._namespaces, name, obj, 0)

    async def _empty(self, name: str) -> None:
        while self._leaving(name):
            try:
                await self._purge(name)
                await self._context.backend.consistent()
                if not self._lingers(name) and await self._finalize(name):
                    return
            except (ApiError, Stale) as error:
                log.info("namespace %s is not empty yet: %s", name, error)
            except Exception:
                log.exception("namespace %s could not be emptied", name)
            await asyncio.sleep(_RETRY_SECONDS)

    def _leaving(self, name: str) -> bool:
        """Another replica may have finished, and somebody made the namespace anew."""
        entry = self._objects.entries.get(name)
        return entry is not None and _terminating(entry)

    async def _purge(self, name: str) -> None:
        """Delete everything in the namespace."""
        for resource in self._catalog.resources():
            serving = resource.serving
            if not serving.namespaced or not self._leaving(name):
                continue
            target = Target(resource, serving, resource.codec, serving.storage, name)
            await purge(self._context.backend, self._context, target)

    def _lingers(self, name: str) -> bool:
        return any(
            resource.serving.namespaced
            and next(resource.objects.suffixes(f"{name}/"), None) is not None
            for resource in self._catalog.resources()
        )

    async def _finalize(self, name: str) -> bool:
        """Take our own finalizer off; the namespace goes when no other is left."""
        entry = self._objects.entries.get(name)
        if entry is None or not _terminating(entry):
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


def _terminating(entry: Entry) -> bool:
    """Whether somebody deleted it. The bytes only tell whether it is worth a look: a label or an
    annotation may say the same."""
    try:
        if b'"deletionTimestamp":"' not in entry.view:
            return False
        return "deletionTimestamp" in entry.decode()["metadata"]
    except Unreadable:
        return False
