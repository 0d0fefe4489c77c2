"""Codec of one resource: converts between stored bytes and the JSON of a requested version.

The verbs, the watches and the admission plugins call it, for one object or for a list. Reading:
decode, then clean metadata, prune, drop nulls and default by the *stored* version's schema,
convert, prune by the *requested* version's schema, add resourceVersion. Writing: convert to the
storage version, prune, encode. Most reads skip all of that: bytes that the current schema is known
to leave unchanged are used as they are, or with another ``apiVersion`` spliced in.
``kube/schema/pipeline.py`` has the rules, and ``wire/conversion`` converts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from operator import attrgetter
from typing import cast

import orjson

from instar.base import offload
from instar.base.json_values import Object, copy_json
from instar.server.registry.resources.serving import Serving, VersionServing
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry
from instar.server.registry.stored.lazy_entry import load_entries
from instar.server.registry.stored.object_bytes import spliced
from instar.server.registry.stored.prepared_object import (
    PreparedObject,
    encode_at_revision,
    encode_for_storage,
    without_server_fields,
)
from instar.server.registry.stored.storage_errors import version_removed
from instar.server.registry.stored.uniform_views import collector_for, has_compact, is_read_at_once
from instar.server.registry.stored.version_reads import VersionReads
from instar.server.registry.stored.views import LazyViews, Views
from instar.server.registry.stored.written_view import WrittenView
from instar.wire.conversion.caching import Finish, Load, SharedConverter
from instar.wire.conversion.converter import ObjectWithJson

_CHUNK = 200
"""Objects brought to today's schema per turn of the event loop."""
_UNIFORM_CHUNK = 5000
"""Objects per turn of the event loop where only references to their bytes are collected."""
_LAZY_CHUNK = 50
"""Objects per turn of the event loop where their bytes are read from disk first."""
_TOKEN = attrgetter("token")


Convert = Callable[[Sequence[Object], VersionServing, VersionServing], Awaitable[list[Object]]]
"""(objects, source, target) → the objects at the target version, pruned by its schema."""


class Codec:
    """Reads and writes the objects of one ``Serving``. It is replaced together with the
    ``Serving``, which drops everything that was cached under the old schema."""

    def __init__(self, serving: Serving, shared: SharedConverter, *, cached: bool = True) -> None:
        self.serving = serving
        self._shared = shared
        self._cached = cached
        self.version_reads = VersionReads()
        self._by_api_version = {
            version.api_version: version for version in serving.versions.values()
        }

    def uncached(self) -> Codec:
        """Return a codec that converts anew each time and caches nothing."""
        return Codec(self.serving, self._shared, cached=False)

    def forget(self) -> None:
        """Drop all cached conversions: after a reload a revision may hold other content."""
        self._shared.forget()

    def close(self) -> None:
        """Drop all cached conversions for good: the CRD has changed."""
        self._shared.close()

    @property
    def remembers(self) -> bool:
        """Whether a conversion made now is still cached a moment later."""
        return self._cached and self._shared.remembers

    def view_now(self, entry: CacheEntry, wanted: VersionServing) -> bytes | None:
        """Return the view without awaiting; None when it has to be converted first, or is costly to
        bring to today's schema."""
        stored = self._stored_version(entry, wanted)
        view = self._cheap_normal_view(entry, stored)
        if stored is wanted or view is None:
            return view
        if self.serving.splices(stored, wanted):
            return _spliced(view, stored, wanted)
        if not self._cached:
            return None
        self.version_reads.note(wanted.name)
        return self._shared.known((entry.suffix, entry.revision), wanted.api_version)

    def is_direct(self, entry: CacheEntry, wanted: VersionServing) -> bool:
        """Return whether ``wanted`` shows the entry's own fields, without a conversion."""
        if entry.api_version == wanted.api_version:
            return True
        stored = self._stored_version(entry, wanted)
        return self.serving.splices(stored, wanted)

    async def views(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> Views:
        """Return the entries' JSON at ``wanted``, in order. Fails as a whole."""
        same = await self.uniform_views(entries, wanted)
        if same is None and has_compact(entries):
            same = await self._lazy_views(entries, wanted)
        if same is not None:
            return same
        found: list[bytes | None] = []
        for start in range(0, len(entries), _CHUNK):
            if start:
                await asyncio.sleep(0)
            await self.make_normal(entries[start : start + _CHUNK], wanted)
            found += [self.view_now(entry, wanted) for entry in entries[start : start + _CHUNK]]
        missing = [position for position, view in enumerate(found) if view is None]
        if missing:
            converted = await self._converted([entries[index] for index in missing], wanted)
            for position, view in zip(missing, converted, strict=True):
                found[position] = view
        return Views(cast(list[bytes], found))

    async def uniform_views(
        self, entries: Sequence[CacheEntry], wanted: VersionServing
    ) -> Views | None:
        """Return the views of entries that are all known to be normal for one version's schema,
        which is ``wanted`` or differs from it in ``apiVersion`` alone; None where a view has to be
        made first. Most lists take this path, which makes no call per object."""
        stored = self._uniform_version(entries, wanted)
        if stored is None:
            return None
        collector = collector_for(
            entries, stored, wanted, partial(self.direct_views, wanted=wanted)
        )
        for start in range(0, len(entries), _UNIFORM_CHUNK):
            if start:
                await asyncio.sleep(0)
            part = entries[start : start + _UNIFORM_CHUNK]
            # Checked per part: between two parts a request under another schema may run.
            if set(map(_TOKEN, part)) != {stored} or not collector.add(part):
                return None
        return collector.views()

    def _uniform_version(
        self, entries: Sequence[CacheEntry], wanted: VersionServing
    ) -> VersionServing | None:
        """Return the version that the first entry is normal for, if its bytes can be used for
        ``wanted``."""
        stored = entries[0].token if entries else None
        if not isinstance(stored, VersionServing):
            return None
        if self.serving.versions.get(stored.name) is not stored:
            return None
        return stored if stored is wanted or self.serving.splices(stored, wanted) else None

    async def _lazy_views(
        self, entries: Sequence[CacheEntry], wanted: VersionServing
    ) -> Views | None:
        """Return the views of lazy entries that are not all normal: of a short list read now, of a
        long one only measured. None where an entry has to be converted first."""
        bodies, size, holds = list[bytes](), 0, is_read_at_once(entries)
        for start in range(0, len(entries), _LAZY_CHUNK):
            if start:
                await asyncio.sleep(0)
            part = entries[start : start + _LAZY_CHUNK]
            if not all(self.is_direct(entry, wanted) for entry in part):
                return None
            largest = max(entry.size for entry in part)
            found = await offload.run(largest, self.direct_views, part, wanted)
            size += sum(map(len, found))
            if holds:
                bodies += found
        if holds:
            return Views(bodies, size=size)
        return LazyViews(entries, partial(self.direct_views, wanted=wanted), size)

    def direct_views(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> list[bytes]:
        """Return the views of entries that need no conversion, whatever it costs, read from disk
        together."""
        found: list[bytes] = []
        for entry, loaded in zip(entries, load_entries(entries), strict=True):
            stored = self._stored_version(entry, wanted)
            if loaded.token is not stored:
                _keep_normal(entry, loaded, stored, self._normalised(loaded, stored))
            view = loaded.normal or loaded.view
            found.append(view if stored is wanted else _spliced(view, stored, wanted))
        return found

    async def object(self, entry: CacheEntry, wanted: VersionServing) -> Object:
        """Return one entry's object at ``wanted``; most have their bytes ready."""
        if entry.token is wanted and (view := entry.normal or entry.ready):
            return cast(Object, orjson.loads(view))
        return (await self.objects([entry], wanted))[0]

    async def objects(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> list[Object]:
        """Return fresh dicts at ``wanted``, resourceVersion included."""
        return [orjson.loads(view) for view in await self.views(entries, wanted)]

    async def prepare(
        self,
        obj: Object,
        version: VersionServing,
        convert: Convert | None = None,
        size: int = 0,
    ) -> PreparedObject:
        """Return ``obj`` (at ``version``) as it will be stored. The argument is not kept.

        Where a webhook converts, the object is also converted back, because nothing may fail after
        the commit. ``convert`` is for callers that have converted this object before.
        """
        if version is self.serving.storage:
            return await offload.run(size, encode_for_storage, without_server_fields(obj))
        obj = without_server_fields(obj)
        stored = (await (convert or self.to_version)([obj], version, self.serving.storage))[0]
        back = None
        if self.serving.converts_remotely:
            back = await self._as_read_at(stored, self.serving.storage, version)
        return await offload.run(size, encode_for_storage, stored, back)

    async def prepare_marked(
        self, obj: Object, reader: VersionServing | None, size: int = 0
    ) -> PreparedObject:
        """Return a stored object of which the server changed only metadata, as it will be stored.

        It stays in its stored version where leaving that needs a webhook: a deletion must not
        depend on one. ``back`` is the object as ``reader`` sees it.
        """
        obj = without_server_fields(obj)
        source = self._by_api_version.get(obj["apiVersion"])
        if source is not None and not self.serving.converts_remotely:
            obj = (await self.to_version([obj], source, self.serving.storage))[0]
            source = self.serving.storage
        if reader is None:
            return await offload.run(size, encode_for_storage, obj)
        if source is None:
            raise version_removed(self.serving.crd, obj, reader.api_version)
        back = await self._as_read_at(obj, source, reader)
        return await offload.run(size, encode_for_storage, obj, back)

    async def preview(self, prepared: PreparedObject, version: VersionServing) -> Object:
        """Return the object that ``version`` would read if ``prepared`` were stored, without a
        revision."""
        if prepared.back is not None:
            return prepared.back
        return await self._as_read_at(prepared.obj, self.serving.storage, version)

    def written_view(self, back: Object, version: VersionServing) -> WrittenView:
        """Return the written object's view at the writer's version, to be cached when the write has
        its revision."""
        memory = self._shared if self._cached else None
        return WrittenView(partial(encode_at_revision, back), version.api_version, memory)

    async def _as_read_at(
        self, stored: Object, source: VersionServing, version: VersionServing
    ) -> Object:
        readable: Object = copy_json(stored)
        self.serving.strategy.from_storage(readable, source)
        return (await self.to_version([readable], source, version))[0]

    async def converted_for_admission(
        self, obj: Object, source: VersionServing, target: VersionServing
    ) -> Object:
        """Return the object at another version for admission: as the converter left it, including
        fields that the version does not have. Built-in kinds are pruned by their types."""
        if source is target:
            return obj
        if self.serving.builtin:
            return (await self.to_version([obj], source, target))[0]
        return (await self._shared.convert([obj], target.api_version))[0]

    def _stored_version(self, entry: CacheEntry, wanted: VersionServing) -> VersionServing:
        found = self._by_api_version.get(entry.api_version)
        if found is None:
            raise version_removed(self.serving.crd, entry.decode(), wanted.api_version)
        return found

    async def make_normal(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> None:
        """Bring entries to today's schema, so that ``view_now`` finds them done; in a thread those
        that are large or grow by defaults."""
        breaks = offload.Breaks()
        for entry in entries:
            stored = self._stored_version(entry, wanted)
            if entry.token is not stored:
                loaded = entry.load()
                view = await offload.run(entry.size, self._normalised, loaded, stored)
                _keep_normal(entry, loaded, stored, view)
                await breaks.between()

    def _cheap_normal_view(self, entry: CacheEntry, stored: VersionServing) -> bytes | None:
        """Return the stored bytes brought to today's schema of their own version."""
        if entry.token is stored:
            return entry.normal or entry.ready or entry.view
        loaded = offload.run_if_small(entry.size, self._normal, entry, stored)
        return None if loaded is None else loaded.normal or loaded.view

    def _normal(self, entry: CacheEntry, stored: VersionServing) -> InMemoryEntry:
        loaded = entry.load()
        if loaded.token is not stored:
            _keep_normal(entry, loaded, stored, self._normalised(loaded, stored))
        return loaded

    def _normalised(self, entry: InMemoryEntry, stored: VersionServing) -> bytes:
        obj = entry.content()
        self.serving.strategy.from_storage(obj, stored)
        return encode_at_revision(obj, entry.revision)

    def versions_to_prefetch(self, entry: CacheEntry) -> list[VersionServing]:
        """Return the recently read versions to which only a webhook can convert the entry."""
        if not (self._cached and self.serving.converts_remotely and self._shared.has_room):
            return []
        is_recently_read = self.version_reads.is_recently_read
        return [
            version
            for version in self.serving.versions.values()
            if version.served
            and version.api_version != entry.api_version
            and is_recently_read(version.name)
        ]

    def outdate(self, entry: CacheEntry) -> None:
        """Let the cached views of an entry expire soon: it was overwritten or deleted."""
        self._shared.outdate((entry.suffix, entry.revision), self._by_api_version)

    async def convert_ahead(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> int:
        """Convert entries before a client reads them at ``wanted``. Return how many needed it."""
        return await self._shared.convert_ahead(*self._conversion(entries, wanted))

    async def _converted(
        self, entries: Sequence[CacheEntry], wanted: VersionServing
    ) -> list[bytes]:
        converting = self._shared.convert_encoded(
            *self._conversion(entries, wanted), bypass=not self._cached
        )
        # A remote call has a deadline, and asyncio's deadlines need a task of their own.
        return await (converting if self._cached else asyncio.create_task(converting))

    def _conversion(
        self, entries: Sequence[CacheEntry], wanted: VersionServing
    ) -> tuple[list[Hashable], Load, str, Finish]:
        """Return the arguments by which a ``SharedConverter`` converts a batch."""

        def load(positions: Sequence[int]) -> list[Object]:
            return [self._without_revision(entries[position], wanted) for position in positions]

        def finish(position: int, converted: Object) -> bytes:
            self.serving.strategy.after_conversion(converted, wanted)
            return encode_at_revision(converted, entries[position].revision)

        keys: list[Hashable] = [(entry.suffix, entry.revision) for entry in entries]
        return keys, load, wanted.api_version, finish

    def _without_revision(self, entry: CacheEntry, wanted: VersionServing) -> Object:
        # Checked again: while this request waited, one that began under an older CRD may have
        # brought the entry to its own schema.
        loaded = self._normal(entry, self._stored_version(entry, wanted))
        if loaded.normal is None and self.serving.converts_remotely:
            stored = loaded.stored()
            return ObjectWithJson(orjson.loads(stored), stored)
        obj: Object = orjson.loads(loaded.normal or loaded.view)
        obj["metadata"].pop("resourceVersion", None)
        return obj

    async def to_version(
        self, objects: Sequence[Object], source: VersionServing, target: VersionServing
    ) -> list[Object]:
        """Return the objects at another version, pruned."""
        if source is target:
            return list(objects)
        converted = await self._shared.convert(objects, target.api_version)
        if self.serving.splices(source, target):
            return converted
        return [self._pruned(obj, target) for obj in converted]

    def _pruned(self, obj: Object, target: VersionServing) -> Object:
        """Return the object pruned. A webhook's response shares nothing but metadata values with
        what was sent, so it is copied only where there is something to prune."""
        if self.serving.converts_remotely and target.pipeline.compiled.is_tidy(obj):
            return obj
        fresh: Object = copy_json(obj)
        self.serving.strategy.after_conversion(fresh, target)
        return fresh


def _keep_normal(
    entry: CacheEntry, loaded: InMemoryEntry, stored: VersionServing, view: bytes
) -> None:
    loaded.normal = None if view == loaded.view else view
    loaded.token = stored
    entry.keep_normal(loaded, stored)


def _spliced(view: bytes, stored: VersionServing, wanted: VersionServing) -> bytes:
    return spliced(view, stored.opening, wanted.opening, wanted.api_version)
