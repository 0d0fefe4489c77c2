"""One resource as requests meet it: how it is served now, and where its objects are.

A ``Resource`` lives as long as its CRD; its ``Serving`` is swapped whole when the CRD changes.
Requests in flight keep the ``Serving`` they began with.
"""

from __future__ import annotations

from dataclasses import field

from instar.base.errors import NotFound
from instar.base.fast_dataclass import dataclass
from instar.kube.api.crd import Crd
from instar.server.registry.resources.serving import Serving, VersionServing
from instar.server.registry.stored.backend import Backend, Objects
from instar.server.registry.stored.codec import Codec
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.label_index import LabelIndex
from instar.server.registry.stored.watchers import WatchHub
from instar.wire.storage.watchcache.collection import Listener


@dataclass(eq=False)
class Resource:
    """Mutable only through ``swap``, ``note`` and ``reset``; everything else reads."""

    serving: Serving
    crd: Crd
    """The CRD of the moment: conditions change without a new ``Serving``."""
    codec: Codec
    objects: Objects
    hub: WatchHub
    closed: bool = False
    _labels: LabelIndex | None = None
    _followers: list[Listener[CacheEntry]] = field(default_factory=list)

    def follow(self, told: Listener[CacheEntry]) -> None:
        """Have ``told`` called with every change of an object, as long as the resource lives: a
        collection outlives its CRD, and who comes back must not find yesterday's followers."""
        self._followers.append(told)
        self.objects.listeners.append(told)

    async def labels(self) -> LabelIndex:
        while True:
            index = self._labels
            if index is None:
                index = self._labels = LabelIndex(self.objects)
            await index.built()
            if index is self._labels or self.closed:
                return index

    def swap(self, serving: Serving) -> None:
        """Serve by a new CRD spec from now on; watchers reconnect and see the new shape."""
        self.codec.close()
        self.hub.end_all()
        self.serving, self.crd = serving, serving.crd
        self.codec = Codec(serving, serving.converter)

    def note(self, crd: Crd) -> None:
        """The CRD changed in a way that does not concern how objects are served."""
        self.crd = crd

    def reset(self) -> None:
        """The cache was loaded anew: what followed its changes starts over."""
        self.codec.forget()
        if self._labels is not None:
            self._labels.close()
            self._labels = None
        self.hub.end_all()

    def close(self) -> None:
        self.closed = True
        self.codec.close()
        self.hub.close()
        for told in self._followers:
            self.objects.listeners.remove(told)
        self._followers.clear()
        if self._labels is not None:
            self._labels.close()


def open_resource(serving: Serving, backend: Backend) -> Resource:
    objects = backend.collection(serving.prefix)
    return Resource(
        serving=serving,
        crd=serving.crd,
        codec=Codec(serving, serving.converter),
        objects=objects,
        hub=WatchHub(objects),
    )


@dataclass(slots=True, eq=False)
class Target:
    """What a request points at: a resource at a version, and perhaps one object of it.

    Nobody changes one: many requests share it. It is not frozen only because making one is part
    of every create.
    """

    resource: Resource
    serving: Serving
    codec: Codec
    version: VersionServing
    namespace: str = ""
    name: str = ""

    @property
    def suffix(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def named(self, name: str) -> Target:
        return Target(self.resource, self.serving, self.codec, self.version, self.namespace, name)

    def entry(self) -> CacheEntry | None:
        return self.resource.objects.entries.get(self.suffix)

    def renewed(self) -> Target:
        """The same by the CRD of now: it may have changed while the request waited."""
        resource = self.resource
        if not resource.closed and self.serving is resource.serving:
            return self
        version = None if resource.closed else resource.serving.served(self.version.name)
        if version is None:
            raise NotFound("the server could not find the requested resource")
        serving, codec = resource.serving, resource.codec
        return Target(resource, serving, codec, version, self.namespace, self.name)
