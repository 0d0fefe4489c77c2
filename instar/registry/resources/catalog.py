"""(group, plural) → Resource: follows CRD events and swaps whole bundles.

Discovery and OpenAPI are computed from the same catalog, so they cannot disagree with what is
served. Built-in resources are in it from the start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

import orjson

from instar.api.crd import Crd, read_crd
from instar.registry.resources.resource import Resource, open_resource
from instar.registry.resources.serving import Serving
from instar.registry.resources.storedschemas import StoredSchemas
from instar.registry.stored.backend import Backend
from instar.registry.stored.entry import Entry
from instar.storage.collection import Change

log = logging.getLogger(__name__)
ReadCrd = Callable[[Entry], dict[str, Any]]
MakeServing = Callable[[Crd], Serving]


class Catalog:
    def __init__(
        self,
        backend: Backend,
        builtins: Iterable[Serving],
        read: ReadCrd,
        make_serving: MakeServing,
    ) -> None:
        self.generation = 0
        """Grows with every change a client can see in discovery or OpenAPI."""
        self._backend = backend
        self._read = read
        self._make_serving = make_serving
        self._builtins = {
            (serving.group, serving.plural): open_resource(serving, backend) for serving in builtins
        }
        self._customs: dict[str, Resource] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        for resource in self._builtins.values():
            self._kinds.setdefault((resource.serving.group, resource.serving.kind), resource)
        self._opened: list[Callable[[Resource], None]] = []
        self._closed: list[Callable[[Resource], None]] = []
        self._shapes: dict[str, bytes] = {}
        self._schemas: dict[str, StoredSchemas] = {}

    def follow(self, crds: Resource) -> None:
        """Load the CRDs there are and keep up with their changes from now on."""
        for entry in crds.objects.entries.values():
            self._take(entry)
        crds.objects.listeners.insert(0, self._changed)
        self._backend.cache.on_reset(lambda: self._reload(crds))

    def builtin(self, group: str, plural: str) -> Resource:
        return self._builtins[(group, plural)]

    def find(self, group: str, plural: str) -> Resource | None:
        """The resource, whether or not its CRD is established."""
        found = self._builtins.get((group, plural))
        return found if found is not None else self._customs.get(f"{plural}.{group}")

    def of_kind(self, group: str, kind: str) -> Resource | None:
        """The resource whose objects are of this kind."""
        found = self._kinds.get((group, kind))
        return None if found is None or found.closed else found

    def on_opened(self, told: Callable[[Resource], None]) -> None:
        """Have ``told`` called with each resource that is served from now on."""
        self._opened.append(told)

    def on_closed(self, told: Callable[[Resource], None]) -> None:
        """Have ``told`` called with each resource that is not served any more: whoever keeps
        something for one lets go of it, else the schemas of every CRD there ever was stay."""
        self._closed.append(told)

    def custom(self, crd_name: str) -> Resource | None:
        return self._customs.get(crd_name)

    def resources(self) -> list[Resource]:
        return [*self._builtins.values(), *self._customs.values()]

    def customs(self) -> list[Resource]:
        return list(self._customs.values())

    def _changed(self, change: Change[Entry]) -> None:
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

    def _take(self, entry: Entry) -> None:
        """A stored CRD that makes no sense (by another's hand) is not served; the rest goes on."""
        try:
            self._put(entry)
        except Exception:
            log.exception("the stored CRD %s cannot be served", entry.suffix)
            self._remove(entry.suffix)

    def _put(self, entry: Entry) -> None:
        obj = self._read(entry)
        crd, shape = read_crd(obj), _shape(obj)
        known = self._customs.get(crd.name)
        self.generation += 1
        if known is not None and known.crd.uid == crd.uid and self._shapes[crd.name] == shape:
            schemas = self._schemas[crd.name]
            schemas.entry = entry
            known.note(schemas.behind(crd))
            return
        self._shapes[crd.name] = shape
        schemas = self._schemas[crd.name] = StoredSchemas(entry, self._read)
        serving = self._make_serving(schemas.behind(crd))
        if known is not None and known.serving.prefix == serving.prefix:
            self._forget_kind(known)
            known.swap(serving)
            self._kinds[(serving.group, serving.kind)] = known
            return
        if known is not None:
            self._close(known)
        resource = self._customs[crd.name] = open_resource(serving, self._backend)
        self._kinds[(serving.group, serving.kind)] = resource
        for told in self._opened:
            told(resource)

    def _remove(self, name: str) -> None:
        resource = self._customs.pop(name, None)
        self._shapes.pop(name, None)
        self._schemas.pop(name, None)
        self.generation += 1
        if resource is not None:
            self._close(resource)

    def _close(self, resource: Resource) -> None:
        resource.close()
        self._forget_kind(resource)
        for told in self._closed:
            told(resource)

    def _forget_kind(self, resource: Resource) -> None:
        kind = (resource.serving.group, resource.serving.kind)
        if self._kinds.get(kind) is resource:
            del self._kinds[kind]


def _shape(obj: dict[str, Any]) -> bytes:
    """What decides how objects are served: a change of anything else keeps the bundle."""
    accepted = (obj.get("status") or {}).get("acceptedNames")
    text = orjson.dumps([obj.get("spec"), accepted], option=orjson.OPT_SORT_KEYS)
    return blake2b(text, digest_size=32).digest()
