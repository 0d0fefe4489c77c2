"""NamespaceAutoProvision and NamespaceExists: what happens to objects of a missing namespace.

Both are off by default. If enabled, the admission chain (``server/lifecycle/admission_setup.py``)
calls them for each write: the first creates the namespace of a new object, the second refuses
writes to a namespace that does not exist. ``namespace_lifecycle.py``, which is on by default,
checks creations only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from instar.base import errors
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.keys import collection_prefix

CreateNamespace = Callable[[str], Awaitable[None]]
_WRITES = (Verb.CREATE, Verb.UPDATE, Verb.DELETE)


class NamespaceAutoProvision:
    def __init__(self, backend: Backend, create: CreateNamespace) -> None:
        self._backend, self._create = backend, create
        self._namespaces = backend.collection(collection_prefix("", "namespaces"))

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        concerned = serving.namespaced and verb is Verb.CREATE
        return PluginPhases.ADMIT if concerned else PluginPhases.NONE

    def admit(self, operation: Operation) -> Awaitable[None] | None:
        namespace = operation.target.namespace
        if operation.dry_run or not namespace or namespace in self._namespaces.entries:
            return None
        return self._provide(operation, namespace)

    def validate(self, operation: Operation) -> None:
        return

    async def _provide(self, operation: Operation, namespace: str) -> None:
        await self._backend.consistent()
        if namespace in self._namespaces.entries:
            return
        try:
            await self._create(namespace)
        except errors.AlreadyExists:
            return
        except errors.ApiError as error:
            serving = operation.target.serving
            why = str(error)
            raise errors.forbidden(serving.group, serving.plural, operation.name, why) from error


class NamespaceExists:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._namespaces = backend.collection(collection_prefix("", "namespaces"))

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        concerned = serving.namespaced and verb in _WRITES
        return PluginPhases.VALIDATE if concerned else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        namespace = operation.target.namespace
        if not namespace or namespace in self._namespaces.entries:
            return None
        return self._look_again(namespace)

    async def _look_again(self, namespace: str) -> None:
        """Another server may have created it a moment ago."""
        await self._backend.consistent()
        if namespace not in self._namespaces.entries:
            raise errors.not_found("", "namespaces", namespace)
