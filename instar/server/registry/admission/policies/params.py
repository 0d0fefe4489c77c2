"""Finds a policy's parameter objects by kind, name or selector, at the version that the policy
names.

Called by ``validating.py``, ``mutating.py`` and ``permissions.py``, through the ``ParamSource`` of
the server's home: ``Params`` reads this server's objects; in a cluster that is followed,
``server/cluster_home/params.py`` reads the main cluster's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from instar.base import offload
from instar.base.json_values import Object
from instar.kube.admission.policies.params import (
    NOT_FOUND,
    ParamError,
    ParamSelection,
    refuses_none,
    select_params,
)
from instar.kube.api.names import GroupVersionKind
from instar.server.registry.resources.resource import Resource
from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry

_REMEMBERED = 256


class ParamKind(Protocol):
    """A kind whose objects are parameters."""

    @property
    def plural(self) -> str: ...

    async def collect(self, ref: Object, namespace: str) -> list[Object]:
        """Return a binding's params for a request in ``namespace``; raises ``ParamError``."""
        ...


class ParamSource(Protocol):
    """Finds kinds of parameters."""

    async def kind(self, wanted: GroupVersionKind) -> ParamKind | None:
        """Return the served kind, or None. Raises ``ParamError`` if that cannot be found out."""
        ...


async def param_kind(source: ParamSource, wanted: GroupVersionKind) -> ParamKind:
    """Return the kind; raises ``ParamError`` where it is not served."""
    found = await source.kind(wanted)
    if found is None:
        raise ParamError(f"failed to find resource referenced by paramKind: '{wanted}'")
    return found


class StoredParams(NamedTuple):
    """A kind that this server serves."""

    reader: Params
    resource: Resource
    version: VersionServing

    @property
    def plural(self) -> str:
        return self.resource.serving.plural

    async def collect(self, ref: Object, namespace: str) -> list[Object]:
        return await self.reader.collect(self.resource, self.version, ref, namespace)


class Params:
    """Reads parameter objects at the version that a policy names."""

    def __init__(self, backend: Backend, of_kind: Callable[[str, str], Resource | None]) -> None:
        self._backend, self._of_kind = backend, of_kind
        self._known: dict[tuple[str, str], tuple[int, VersionServing, Object]] = {}
        """(collection, suffix) → the object at a revision and version."""

    async def kind(self, wanted: GroupVersionKind) -> ParamKind | None:
        return self.stored_kind(wanted)

    def stored_kind(self, wanted: GroupVersionKind) -> StoredParams | None:
        """Return the kind if this server serves it."""
        resource = self._of_kind(wanted.group, wanted.kind)
        version = None if resource is None else resource.serving.served(wanted.version)
        return (
            None if resource is None or version is None else StoredParams(self, resource, version)
        )

    async def collect(
        self, resource: Resource, version: VersionServing, ref: Object, namespace: str
    ) -> list[Object]:
        """Return a binding's params for a request in ``namespace``; raises ``ParamError``."""
        namespaced = resource.serving.namespaced
        wanted = select_params(ref, namespaced=namespaced, request_namespace=namespace)
        entries = await self._entries(resource, wanted)
        found: list[Object] = []
        breaks = offload.Breaks()
        for entry in entries:
            found.append(await self._at_version(resource, version, entry))
            await breaks.between()
        if not wanted.name and wanted.selector is not None:
            found = [obj for obj in found if wanted.selector.matches(_labels(obj))]
        if not found and refuses_none(ref):
            raise ParamError(NOT_FOUND)
        return found

    async def _entries(self, resource: Resource, wanted: ParamSelection) -> list[CacheEntry]:
        prefix = f"{wanted.namespace}/" if wanted.namespace else ""
        held = resource.objects.entries
        if not wanted.name:
            entries = [held[suffix] for suffix in list(resource.objects.suffixes(prefix))]
            if wanted.selector is None or resource.serving.converts_remotely:
                # conversion webhooks may change labels, so selectors match after conversion
                return entries
            return [entry for entry in entries if wanted.selector.matches(entry.labels)]
        suffix = f"{prefix}{wanted.name}"
        if suffix not in held:
            # It may have been created through another replica a moment ago.
            await self._backend.consistent()
        entry = resource.objects.entries.get(suffix)
        return [] if entry is None else [entry]

    async def _at_version(
        self, resource: Resource, version: VersionServing, entry: CacheEntry
    ) -> Object:
        key = (resource.objects.prefix, entry.suffix)
        known = self._known.get(key)
        if known is not None and known[0] == entry.revision and known[1] is version:
            return known[2]
        shown = (await resource.codec.objects([entry], version))[0]
        while len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = entry.revision, version, shown
        return shown


def _labels(obj: Object) -> dict[str, str]:
    found = (obj.get("metadata") or {}).get("labels")
    return found if isinstance(found, dict) else {}
