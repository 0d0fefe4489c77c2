"""THE pipeline between stored bytes and one version's view, both directions, batches only.

Out: decode → clean metadata, prune, drop nulls, default by the *stored* version's schema →
convert → prune by the *requested* version's schema → resourceVersion. In: the object at the
request's version → convert to the storage version → prune by its schema → encode.
Most reads take none of these steps: bytes known to be normal for today's schema are handed out
as they are, or with another ``apiVersion`` spliced in.
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
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.resources.serving import Serving, VersionServing
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry
from instar.server.registry.stored.lazy_entry import LazyEntry, load_entries
from instar.server.registry.stored.prepared_object import (
    PreparedObject,
    prepared,
    revised,
    without_server_fields,
)
from instar.server.registry.stored.uniform_views import collector_for, is_read_at_once
from instar.server.registry.stored.version_reads import VersionReads
from instar.server.registry.stored.views import LazyViews, Views
from instar.server.registry.stored.written_view import WrittenView
from instar.wire.conversion.caching import Finish, Load, SharedConverter
from instar.wire.conversion.converter import Known
from instar.wire.conversion.failure import Attempt, ConversionFailed, FailureType

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
    """One per ``Serving``; dropped with it, and with it every memo made under its schema."""

    def __init__(self, serving: Serving, shared: SharedConverter, *, cached: bool = True) -> None:
        self.serving = serving
        self._shared = shared
        self._cached = cached
        self.version_reads = VersionReads()
        self._by_api_version = {
            version.api_version: version for version in serving.versions.values()
        }

    def uncached(self) -> Codec:
        """The same, but every conversion is made afresh and none is remembered."""
        return Codec(self.serving, self._shared, cached=False)

    def forget(self) -> None:
        """The store is not the one it was: the same revision may hold something else."""
        self._shared.forget()

    def close(self) -> None:
        """Forget every remembered conversion; the CRD has changed."""
        self._shared.close()

    @property
    def remembers(self) -> bool:
        """Whether what is converted now will be there in a moment."""
        return self._cached and self._shared.remembers

    def view_now(self, entry: CacheEntry, wanted: VersionServing) -> bytes | None:
        """The view without awaiting anything, or None when work has to be done first."""
        stored = self._stored_version(entry, wanted)
        view = self._normal_view(entry, stored)
        if stored is wanted:
            return view
        if self.serving.splices(stored, wanted):
            return _spliced(view, stored, wanted)
        if not self._cached:
            return None
        self.version_reads.note(wanted.name)
        return self._shared.known((entry.suffix, entry.revision), wanted.api_version)

    def is_direct(self, entry: CacheEntry, wanted: VersionServing) -> bool:
        """Whether the entry's own metadata and fields are what ``wanted`` shows."""
        if entry.api_version == wanted.api_version:
            return True
        stored = self._stored_version(entry, wanted)
        return self.serving.splices(stored, wanted)

    async def views(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> Views:
        """The entries' JSON at ``wanted``, in order; all or an error, never a part."""
        same = await self.uniform_views(entries, wanted)
        if same is None and entries and isinstance(entries[0], LazyEntry):
            same = await self._lazy_views(entries, wanted)
        if same is not None:
            return same
        found: list[bytes | None] = []
        for start in range(0, len(entries), _CHUNK):
            if start:
                await asyncio.sleep(0)
            await self._normalise_large(entries[start : start + _CHUNK], wanted)
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
        collector = collector_for(entries, stored, wanted, partial(self._shown, wanted=wanted))
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
            found = await offload.run(largest, self._shown, part, wanted)
            size += sum(map(len, found))
            if holds:
                bodies += found
        if holds:
            return Views(bodies, size=size)
        return LazyViews(entries, partial(self._shown, wanted=wanted), size)

    def _shown(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> list[bytes]:
        """Their views, which need no conversion; read together."""
        found: list[bytes] = []
        for entry, near in zip(entries, load_entries(entries), strict=True):
            stored = self._stored_version(entry, wanted)
            if near.token is not stored:
                _keep_normal(entry, near, stored, self._normalised(near, stored))
            view = near.normal or near.view
            found.append(view if stored is wanted else _spliced(view, stored, wanted))
        return found

    async def object(self, entry: CacheEntry, wanted: VersionServing) -> Object:
        """The same for one: most are normal already, and at hand."""
        if entry.token is wanted and (view := entry.normal or entry.ready):
            return cast(Object, orjson.loads(view))
        return (await self.objects([entry], wanted))[0]

    async def objects(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> list[Object]:
        """Fresh dicts at ``wanted``, resourceVersion included."""
        return [orjson.loads(view) for view in await self.views(entries, wanted)]

    async def prepare(
        self,
        obj: Object,
        version: VersionServing,
        convert: Convert | None = None,
        size: int = 0,
    ) -> PreparedObject:
        """``obj`` (at ``version``) as it will be stored. The argument is not kept.

        Where a webhook is asked, it is asked for the way back, too: after the commit nothing may
        fail any more. ``convert`` is for callers that have converted ``obj`` of ``size`` before.
        """
        if version is self.serving.storage:
            return await offload.run(size, prepared, without_server_fields(obj))
        obj = without_server_fields(obj)
        stored = (await (convert or self.to_version)([obj], version, self.serving.storage))[0]
        back = None
        if self.serving.converts_remotely:
            back = await self._as_read(stored, self.serving.storage, version)
        return await offload.run(size, prepared, stored, back)

    async def prepare_marked(
        self, obj: Object, reader: VersionServing | None, size: int = 0
    ) -> PreparedObject:
        """A stored object of which only metadata was changed by the server itself.

        It stays in the version it lies in where leaving that needs a webhook: whoever deletes
        must not depend on one. ``back`` is what ``reader`` sees; without a reader nobody asks.
        """
        obj = without_server_fields(obj)
        source = self._by_api_version.get(obj["apiVersion"])
        if source is not None and not self.serving.converts_remotely:
            obj = (await self.to_version([obj], source, self.serving.storage))[0]
            source = self.serving.storage
        if reader is None:
            return await offload.run(size, prepared, obj)
        if source is None:
            raise self._vanished(obj, reader)
        back = await self._as_read(obj, source, reader)
        return await offload.run(size, prepared, obj, back)

    async def preview(self, prepared: PreparedObject, version: VersionServing) -> Object:
        """What ``version`` would read if ``prepared`` were stored; no revision in it."""
        if prepared.back is not None:
            return prepared.back
        return await self._as_read(prepared.obj, self.serving.storage, version)

    def written_view(self, back: Object, version: VersionServing) -> WrittenView:
        """What ``prepare`` found out, to be kept once the write has a revision."""
        memory = self._shared if self._cached else None
        return WrittenView(partial(revised, back), version.api_version, memory)

    async def _as_read(
        self, stored: Object, source: VersionServing, version: VersionServing
    ) -> Object:
        readable: Object = copy_json(stored)
        self.serving.strategy.from_storage(readable, source)
        return (await self.to_version([readable], source, version))[0]

    async def shown(self, obj: Object, source: VersionServing, target: VersionServing) -> Object:
        """The object as admission is shown it at another version: as the converter left it, what
        the version does not know included. Custom resources only; built-in kinds have types."""
        if source is target:
            return obj
        if self.serving.builtin:
            return (await self.to_version([obj], source, target))[0]
        return (await self._shared.convert([obj], target.api_version))[0]

    def _stored_version(self, entry: CacheEntry, wanted: VersionServing) -> VersionServing:
        found = self._by_api_version.get(entry.api_version)
        if found is None:
            raise self._vanished(entry.decode(), wanted)
        return found

    def _vanished(self, obj: Object, wanted: VersionServing) -> ConversionFailed:
        """The object lies in a version that has left the CRD."""
        crd, lost = self.serving.crd, obj["apiVersion"]
        listed = ", ".join(version.name for version in crd.versions)
        return Attempt(crd, wanted.api_version, [obj]).failed(
            f"request to convert CR from an invalid group/version: {lost}",
            FailureType.NONE,
            f"the object is stored as {lost}, and the CRD lists only these versions: {listed}",
            advice="put the version back into spec.versions (served: false is enough) and migrate "
            "the stored objects before it is removed",
        )

    async def _normalise_large(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> None:
        """So that nobody has to wait for it in the event loop."""
        for entry in entries:
            if not offload.is_small(entry.size):
                stored = self._stored_version(entry, wanted)
                if entry.token is not stored:
                    near = entry.near()
                    view = await offload.apart(self._normalised, near, stored)
                    _keep_normal(entry, near, stored, view)

    def _normal_view(self, entry: CacheEntry, stored: VersionServing) -> bytes:
        """The stored bytes brought up to today's schema of their own version."""
        if entry.token is stored:
            return entry.normal or entry.ready or entry.view
        near = self._normal(entry, stored)
        return near.normal or near.view

    def _normal(self, entry: CacheEntry, stored: VersionServing) -> InMemoryEntry:
        near = entry.near()
        if near.token is not stored:
            _keep_normal(entry, near, stored, self._normalised(near, stored))
        return near

    def _normalised(self, entry: InMemoryEntry, stored: VersionServing) -> bytes:
        obj = entry.content()
        self.serving.strategy.from_storage(obj, stored)
        return revised(obj, entry.revision)

    def ahead_of_readers(self, entry: CacheEntry) -> list[VersionServing]:
        """The versions an entry may soon be asked for at, that only a webhook can tell."""
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
        """It was written over or deleted: its views need not be remembered much longer."""
        self._shared.outdate((entry.suffix, entry.revision), self._by_api_version)

    async def convert_ahead(self, entries: Sequence[CacheEntry], wanted: VersionServing) -> int:
        """Have ready what readers of ``wanted`` will ask for; how many had to be converted."""
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
        """What a ``SharedConverter`` wants to know of a batch."""

        def load(positions: Sequence[int]) -> list[Object]:
            return [self._unrevised(entries[position], wanted) for position in positions]

        def finish(position: int, converted: Object) -> bytes:
            self.serving.strategy.after_conversion(converted, wanted)
            return revised(converted, entries[position].revision)

        keys: list[Hashable] = [(entry.suffix, entry.revision) for entry in entries]
        return keys, load, wanted.api_version, finish

    def _unrevised(self, entry: CacheEntry, wanted: VersionServing) -> Object:
        # Asked anew: while the request waited its turn, a request that began under an older
        # CRD may have left the entry in the form of its schema.
        near = self._normal(entry, self._stored_version(entry, wanted))
        if near.normal is None and self.serving.converts_remotely:
            stored = near.stored()
            return Known(orjson.loads(stored), stored)
        obj: Object = orjson.loads(near.normal or near.view)
        obj["metadata"].pop("resourceVersion", None)
        return obj

    async def to_version(
        self, objects: Sequence[Object], source: VersionServing, target: VersionServing
    ) -> list[Object]:
        """The objects at another version, pruned."""
        if source is target:
            return list(objects)
        converted = await self._shared.convert(objects, target.api_version)
        if self.serving.splices(source, target):
            return converted
        return [self._tidied(obj, target) for obj in converted]

    def _tidied(self, obj: Object, target: VersionServing) -> Object:
        """Pruned. A webhook's answer shares only values of metadata with what was sent: where
        there is nothing to prune it need not be copied."""
        if self.serving.converts_remotely and target.pipeline.compiled.is_tidy(obj):
            return obj
        fresh: Object = copy_json(obj)
        self.serving.strategy.after_conversion(fresh, target)
        return fresh


def _keep_normal(
    entry: CacheEntry, near: InMemoryEntry, stored: VersionServing, view: bytes
) -> None:
    near.normal = None if view == near.view else view
    near.token = stored
    entry.keep_normal(near, stored)


def _spliced(view: bytes, stored: VersionServing, wanted: VersionServing) -> bytes:
    if view.startswith(stored.opening):
        return wanted.opening + view[len(stored.opening) :]
    return encode_sorted({**orjson.loads(view), "apiVersion": wanted.api_version})
