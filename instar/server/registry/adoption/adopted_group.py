"""Stored objects of one group that moves here from a main cluster, or back.

``server/endpoints/adoption.py`` makes one per request. Putting an object writes the given bytes
with identity, times, owners of fields and deletion as they are; equal bytes are not written again,
so every call may be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import orjson

from instar.base.errors import BadRequest, Conflict, NotFound, not_found
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.adoption.history_floor import HistoryFloor
from instar.server.registry.adoption.records import (
    AdoptionRecord,
    AdoptionState,
    read_record,
    read_uids,
    write_record,
    write_uids,
)
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.prepared_object import without_server_fields
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Stale, Write, unwrapped_store


class ObjectPlace(NamedTuple):
    """The resource of an object, and its key below the resource's."""

    resource: Resource
    suffix: str

    @property
    def key(self) -> str:
        return self.resource.objects.prefix + self.suffix


class AdoptedGroup:
    """The actions of the adoption API on one group. Each may be repeated."""

    def __init__(self, backend: Backend, catalog: Catalog, floor: HistoryFloor, name: str) -> None:
        self._backend, self._catalog, self._floor, self._name = backend, catalog, floor, name

    async def document(self) -> Object:
        """Return the state, and what has changed here since the objects came."""
        await self._backend.consistent()
        record = await read_record(self._backend.store, self._name)
        uids = await read_uids(self._backend.store, self._name)
        return {
            "group": self._name,
            "state": record.state.value,
            "floor": record.floor,
            "onlyHere": record.only_here,
            "durable": not isinstance(unwrapped_store(self._backend.store), MemoryStore),
            "revision": await self._backend.store.barrier(),
            "resources": [_shown(each) for each in self._resources()],
            "since": await asyncio.to_thread(self._changes, record, uids),
        }

    async def revision(self) -> int:
        """Return the revision of the store now; everything up to it is visible here."""
        await self._backend.consistent()
        return await self._backend.store.barrier()

    async def begin(self, least: int, *, discard: bool) -> None:
        """Allow objects to be put, with revisions above ``least``; they replace those of before.
        Raises ``Conflict`` where that would lose what clients wrote here, without ``discard``."""
        state = (await read_record(self._backend.store, self._name)).state
        there = sum(len(each.objects.entries) for each in self._resources())
        adopted = state is AdoptionState.ADOPTED
        if there and not discard and (adopted or state is AdoptionState.NONE):
            raise Conflict(
                f"this server has {counted(there, 'object')} of {self._name} that "
                f"{'were not returned' if adopted else 'did not come from the main cluster'}: "
                "a copy would replace them"
            )
        await self._floor.raise_above(least)
        await self._write(AdoptionState.COPYING, 0)

    async def put(self, changes: Sequence[Any]) -> dict[str, int]:
        """Write objects as they are (``{"object": …}``), or remove them (``{"gone": …}`` with
        kind, namespace and name). Their revisions will be above the given ones. Raises
        ``Conflict`` unless the group is being copied."""
        await self._must_copy()
        found = [self._read(change) for change in changes]
        await self._floor.raise_above(max((revision for *_, revision in found), default=0))
        done = await asyncio.gather(*(self._write_one(place, value) for place, value, _ in found))
        await self._backend.consistent()
        return {"written": sum(done), "unchanged": len(done) - sum(done)}

    async def begin_history(self, least: int) -> int:
        """Begin history above ``least``, for the clients that will come; return its floor."""
        await self._must_copy()
        floor = await self._floor.set(least)
        await self._write(AdoptionState.COPYING, floor)
        return floor

    async def finish(self) -> None:
        """Note what came; nothing is put any more."""
        record = await read_record(self._backend.store, self._name)
        if record.state is AdoptionState.ADOPTED:
            return
        await self._must_copy()
        entries = self._entries()
        found = await asyncio.to_thread(lambda: [(key, _uid(entry)) for key, entry in entries])
        await write_uids(self._backend.store, self._name, found)
        await self._write(AdoptionState.ADOPTED, record.floor)

    async def give_back(self) -> None:
        """Note that the main cluster has everything; the objects stay."""
        await self._write(AdoptionState.RETURNED, 0)

    async def keep_alone(self) -> None:
        """Note that the main cluster's etcd will have no objects any more: a return must write all
        of them. Raises ``Conflict`` unless the group is adopted."""
        record = await read_record(self._backend.store, self._name)
        if record.state is not AdoptionState.ADOPTED:
            raise Conflict(f"{self._name} is not adopted (its state is {record.state.value})")
        await write_record(self._backend.store, self._name, record._replace(only_here=True))

    async def copied_uids(self, plural: str) -> Object:
        """Return the uid of every object that came from the main cluster, by its key."""
        uids = await read_uids(self._backend.store, self._name)
        prefix = f"{plural}/"
        return {
            "uids": {
                key.removeprefix(prefix): uid for key, uid in uids.items() if key.startswith(prefix)
            }
        }

    async def forget(self) -> int:
        """Remove every object of the group, and what is remembered of it; return how many there
        were. Allowed after ``begin`` only, so that a group with clients cannot be removed."""
        await self._must_copy()
        places = [
            ObjectPlace(each, suffix) for each in self._resources() for suffix in each.objects.keys
        ]
        for start in range(0, len(places), 500):
            part = places[start : start + 500]
            await asyncio.gather(*(self._write_one(place, None) for place in part))
        await write_uids(self._backend.store, self._name, ())
        await self._write(AdoptionState.NONE, 0)
        return len(places)

    async def keys(self, plural: str) -> Object:
        """Return key and revision of every object."""
        await self._backend.consistent()
        entries = self._resource(plural).objects.entries
        return {"keys": {key: entry.revision for key, entry in entries.items()}}

    async def page(
        self, plural: str, version: str, after: str, limit: int, since: int = 0
    ) -> Object:
        """Return objects in the order of their keys, at a version or (empty) as they are stored;
        with ``since`` only those written after that revision."""
        await self._backend.consistent()
        resource = self._resource(plural)
        entries = resource.objects.entries
        found = resource.objects.suffixes(start=after + "\0" if after else "")
        keys = [*islice((key for key in found if entries[key].revision > since), limit)]
        return {
            "items": await _views(resource, version, [entries[key] for key in keys]),
            "after": keys[-1] if len(keys) == limit else "",
        }

    async def object(self, plural: str, version: str, suffix: str) -> Object:
        """Return one object at a version, or as it is stored. Raises ``NotFound``."""
        await self._backend.consistent()
        resource = self._resource(plural)
        entry = resource.objects.entries.get(suffix)
        if entry is None:
            raise not_found(self._name, plural, suffix.rpartition("/")[2])
        (found,) = await _views(resource, version, [entry])
        return found

    # -- stored objects

    def _resources(self) -> list[Resource]:
        return sorted(self._catalog.customs_of(self._name), key=lambda each: each.crd.name)

    def _resource(self, plural: str) -> Resource:
        found = self._catalog.find(self._name, plural)
        if found is None or found.serving.builtin:
            raise NotFound(f"{plural}.{self._name} is not served here", details={})
        return found

    def _entries(self) -> list[tuple[str, CacheEntry]]:
        """Return all objects of the group by plural/namespace/name."""
        return [
            (f"{each.serving.plural}/{suffix}", entry)
            for each in self._resources()
            for suffix, entry in each.objects.entries.items()
        ]

    def _changes(self, record: AdoptionRecord, uids: dict[str, str]) -> Object:
        """Count by resource what was created, changed and deleted since the objects came."""
        created: dict[str, int] = {}
        changed: dict[str, int] = {}
        kept = 0
        for key, entry in self._entries():
            plural = key.partition("/")[0]
            if uids.get(key) != _uid(entry):
                created[plural] = created.get(plural, 0) + 1
                continue
            kept += 1
            if entry.revision > record.floor:
                changed[plural] = changed.get(plural, 0) + 1
        return {"created": created, "changed": changed, "deleted": len(uids) - kept}

    async def created_uids(self) -> list[str]:
        """Return the uids of the objects that were created here."""
        uids = set((await read_uids(self._backend.store, self._name)).values())
        entries = self._entries()
        return await asyncio.to_thread(
            lambda: [uid for _, entry in entries if (uid := _uid(entry)) not in uids]
        )

    async def _write_one(self, place: ObjectPlace, value: bytes | None) -> bool:
        """Write unless the bytes are there already; return whether something was written."""
        store = self._backend.store
        while True:
            record = await store.get(place.key)
            if (None if record is None else record.value) == value:
                return False
            expected = 0 if record is None else record.revision
            try:
                await store.commit(Write(place.key, value, expected))
            except Stale:
                continue
            return True

    def _read(self, change: Any) -> tuple[ObjectPlace, bytes | None, int]:
        obj = change.get("object") if isinstance(change, dict) else None
        gone = change.get("gone") if isinstance(change, dict) else None
        if isinstance(gone, dict):
            return self._place(gone.get("kind"), gone), None, 0
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        if not isinstance(obj, dict) or not isinstance(metadata, dict):
            raise BadRequest('each change is {"object": …} or {"gone": …}')
        place = self._place(obj.get("kind"), metadata)
        known = {each.api_version for each in place.resource.serving.versions.values()}
        if obj.get("apiVersion") not in known:
            raise BadRequest(f"{place.suffix}: {obj.get('apiVersion')} is no version of its CRD")
        if not metadata.get("uid") or not metadata.get("creationTimestamp"):
            raise BadRequest(
                f"{place.suffix}: an object of a cluster has uid and creationTimestamp"
            )
        revision = str(metadata.get("resourceVersion") or 0)
        stored = encode_sorted(without_server_fields(obj)) + b"\n"
        return place, stored, int(revision) if revision.isdecimal() else 0

    def _place(self, kind: Any, named: dict[str, Any]) -> ObjectPlace:
        resource = self._catalog.of_kind(self._name, str(kind))
        if resource is None or resource.serving.builtin:
            raise BadRequest(f"{kind} is no kind of {self._name} that is served here")
        name, namespace = named.get("name"), named.get("namespace") or ""
        parts = (namespace, name) if resource.serving.namespaced else (name,)
        if not all(isinstance(part, str) and part and "/" not in part for part in parts):
            raise BadRequest(f"a {kind} has a name that no object can have")
        return ObjectPlace(resource, "/".join(map(str, parts)))

    async def _must_copy(self) -> None:
        record = await read_record(self._backend.store, self._name)
        if record.state is not AdoptionState.COPYING:
            raise Conflict(
                f"{self._name} is not being copied (its state is {record.state.value}): objects "
                "that clients write are not overwritten"
            )

    async def _write(self, state: AdoptionState, floor: int) -> None:
        await write_record(self._backend.store, self._name, AdoptionRecord(state, floor))


def _uid(entry: CacheEntry) -> str:
    return str(orjson.loads(entry.json())["metadata"].get("uid"))


def _shown(resource: Resource) -> Object:
    serving = resource.serving
    return {
        "name": resource.crd.name,
        "uid": resource.crd.uid,
        "generation": resource.crd.generation,
        "versions": sorted(name for name in serving.versions if serving.served(name) is not None),
        "storage": serving.storage.name,
        "objects": len(resource.objects.entries),
    }


async def _views(resource: Resource, version: str, entries: Sequence[CacheEntry]) -> list[Object]:
    if not version:
        return [entry.decode() for entry in entries]
    wanted = resource.serving.served(version)
    if wanted is None:
        raise NotFound(f"{resource.crd.name} serves no version {version}", details={})
    views: Iterator[bytes] = iter(await resource.codec.views(entries, wanted))
    return [orjson.loads(view) for view in views]
