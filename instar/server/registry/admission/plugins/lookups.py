"""Looks up objects of other kinds in the watch cache for admission plugins.

Used by the other modules of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from instar.base.json_values import Object
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.watchcache.collection import Change


class Lookup:
    """Read access to the objects of one kind."""

    def __init__(self, backend: Backend, group: str, plural: str) -> None:
        self._objects = backend.collection(collection_prefix(group, plural))

    def __bool__(self) -> bool:
        return bool(self._objects.entries)

    @contextmanager
    def observed(self, observer: Callable[[Change[CacheEntry]], None]) -> Iterator[None]:
        """Tell changes of these objects while the block runs."""
        self._objects.observers.append(observer)
        try:
            yield
        finally:
            self._objects.observers.remove(observer)

    def get(self, name: str) -> Object | None:
        entry = self._objects.entries.get(name)
        try:
            return None if entry is None else entry.decode()
        except UnreadableEntry:
            return None

    def all(self) -> Iterator[Object]:
        for suffix in self._objects.suffixes():
            found = self.get(suffix)
            if found is not None:
                yield found

    def in_namespace(self, namespace: str) -> Iterator[Object]:
        for suffix in self._objects.suffixes(f"{namespace}/"):
            found = self.get(suffix)
            if found is not None:
                yield found

    def annotated(self, annotation: str) -> Object | None:
        """Return the object marked as default: the newest of several, then the first by name."""
        marked = [
            obj
            for obj in self.all()
            if (obj["metadata"].get("annotations") or {}).get(annotation) == "true"
        ]
        newest = sorted(marked, key=lambda obj: str(obj["metadata"]["name"]))
        newest.sort(key=lambda obj: str(obj["metadata"].get("creationTimestamp")), reverse=True)
        return newest[0] if newest else None
