"""NamespaceLifecycle plugin: rejects creates in missing or terminating namespaces.

The admission chain (``server/lifecycle/admission_setup.py``) calls it for each write. The plugin
also protects the initial namespaces from deletion.
"""

from __future__ import annotations

from collections.abc import Awaitable

from instar.base import errors
from instar.base.json_values import Object
from instar.kube.protobuf.envelope import MAGIC, decode_object
from instar.kube.protobuf.errors import ProtobufError
from instar.server.registry.admission.home_views import HomeViews
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.server.registry.stored.storage_errors import with_api_errors
from instar.wire.storage.keys import collection_prefix

PROTECTED = ("default", "kube-system", "kube-public")
"""Namespaces that cannot be deleted."""


class NamespaceLifecycle:
    def __init__(self, home: HomeViews) -> None:
        backend = self._backend = home.backend
        self._refresh = home.refresh_namespace
        self._namespaces = backend.collection(collection_prefix("", "namespaces"))
        self._staying: CacheEntry | None = None
        """The last namespace entry found active: a cache, because it is checked again and again."""

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        if verb is Verb.CREATE:
            return PluginPhases.BOTH if serving.namespaced else PluginPhases.NONE
        is_namespace = not serving.group and serving.plural == "namespaces"
        return PluginPhases.ADMIT if verb is Verb.DELETE and is_namespace else PluginPhases.NONE

    def admit(self, operation: Operation) -> Awaitable[None] | None:
        if operation.verb is Verb.DELETE:
            _check_protected(operation)
        return self.validate(operation)

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        """Check again, because the namespace may have changed while webhooks were called."""
        if operation.verb is Verb.CREATE and not self._takes(operation.target.namespace):
            return self._check_place(operation)
        return None

    async def _check_place(self, operation: Operation) -> None:
        target = operation.target
        if not target.serving.namespaced:
            return
        await self._refresh(target.namespace)
        entry = self._namespaces.entries.get(target.namespace)
        leaving = await self._foreign(target.namespace) if entry is None else is_terminating(entry)
        if leaving is None:
            raise errors.not_found("", "namespaces", target.namespace)
        if leaving:
            raise _leaving(operation)

    async def _foreign(self, namespace: str) -> bool | None:
        """Return whether a namespace that a kube-apiserver keeps in the same store is terminating;
        None if absent. Reads the store, because its binary values are not in our cache."""
        key = f"namespaces/{namespace}"
        record = await with_api_errors(lambda: self._backend.store.get(key))
        if record is None or not record.value.startswith(MAGIC):
            return None
        try:
            metadata = decode_object(record.value, "v1", "Namespace").get("metadata") or {}
        except ProtobufError:
            return None
        return "deletionTimestamp" in metadata

    def _takes(self, namespace: str) -> bool:
        entry = self._namespaces.entries.get(namespace)
        if entry is None or (entry is not self._staying and is_terminating(entry)):
            return False
        self._staying = entry
        return True


def is_terminating(entry: CacheEntry) -> bool:
    """Return whether the object has a deletionTimestamp. The bytes are only a fast pre-check,
    because a label or an annotation may contain the same text."""
    try:
        if b'"deletionTimestamp":"' not in (entry.ready or entry.view):
            return False
        return "deletionTimestamp" in entry.decode()["metadata"]
    except UnreadableEntry:
        return False


def _check_protected(operation: Operation) -> None:
    serving = operation.target.serving
    name = operation.target.name
    if serving.group or serving.plural != "namespaces" or name not in PROTECTED:
        return
    raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")


def _leaving(operation: Operation) -> errors.Forbidden:
    serving, namespace = operation.target.serving, operation.target.namespace
    metadata: Object = (operation.obj or {}).get("metadata") or {}
    error = errors.forbidden(
        serving.group,
        serving.plural,
        metadata.get("name", ""),
        f"unable to create new content in namespace {namespace} because it is being terminated",
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error
