"""Resource and Target: one served resource with its collection, and what a request points at in it.

The catalog opens a ``Resource`` per CRD or built-in kind; routing makes a ``Target`` per request. A
``Resource`` lives as long as its CRD; its ``Serving`` is replaced as a whole when the CRD changes,
while requests in flight keep the ``Serving`` they began with.
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
    """One served resource. Changed only by ``swap``, ``note``, ``reset`` and ``close``."""

    serving: Serving
    crd: Crd
    """The latest CRD: its conditions change without a new ``Serving``."""
    codec: Codec
    objects: Objects
    hub: WatchHub
    closed: bool = False
    _labels: LabelIndex | None = None
    _followers: list[Listener[CacheEntry]] = field(default_factory=list)

    def follow(self, listener: Listener[CacheEntry]) -> None:
        """Have ``listener`` called with every change of an object until the resource is closed: its
        collection outlives the CRD, and a CRD created again must not find the old listeners."""
        self._followers.append(listener)
        self.objects.observers.append(listener)

    async def labels(self) -> LabelIndex:
        """Return the label index, built if necessary."""
        while True:
            index = self._labels
            if index is None:
                index = self._labels = LabelIndex(self.objects)
            await index.built()
            if index is self._labels or self.closed:
                return index

    def swap(self, serving: Serving) -> None:
        """Serve by a new CRD spec; watches end, so that their clients reconnect to the new
        schema."""
        self.codec.close()
        self.hub.end_all()
        self.serving, self.crd = serving, serving.crd
        self.codec = Codec(serving, serving.converter)

    def note(self, crd: Crd) -> None:
        """Take over a CRD that changed without effect on how objects are served."""
        self.crd = crd

    def reset(self) -> None:
        """Drop everything derived from the cache, which was reloaded."""
        self.codec.forget()
        if self._labels is not None:
            self._labels.close()
            self._labels = None
        self.hub.end_all()

    def close(self) -> None:
        self.closed = True
        self.codec.close()
        self.hub.close()
        for listener in self._followers:
            self.objects.observers.remove(listener)
        self._followers.clear()
        if self._labels is not None:
            self._labels.close()


def open_resource(serving: Serving, backend: Backend) -> Resource:
    """Return a resource on the collection of its ``Serving``."""
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
    """What a request points at: a resource at a version, and perhaps one object of it. Never
    changed, because requests share it; it is not frozen because every create makes one."""

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
        """Return the target of the object with this name in the same collection."""
        return Target(self.resource, self.serving, self.codec, self.version, self.namespace, name)

    def entry(self) -> CacheEntry | None:
        """Return the cache entry of the object; None if it does not exist."""
        return self.resource.objects.entries.get(self.suffix)

    def under_latest_crd(self) -> Target:
        """Return the target under the latest CRD, which may have changed while the request
        waited."""
        resource = self.resource
        if not resource.closed and self.serving is resource.serving:
            return self
        version = None if resource.closed else resource.serving.served(self.version.name)
        if version is None:
            raise NotFound("the server could not find the requested resource")
        serving, codec = resource.serving, resource.codec
        return Target(resource, serving, codec, version, self.namespace, self.name)
