"""Writes objects into the main cluster's etcd as they are, with uid, times and generation.

``return_group.py`` calls it with ``--etcd``, while the group is routed to instar, so that no
request of the main cluster reads what is half written. ``etcd_removal.py`` removes the objects of
an adopted group. Encrypted values are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import NamedTuple

import orjson

from instar.base.json_values import Object
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.moved_group import MovedCrd, MovedGroup
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.store import Record, Stale, Store, Write

_ENCRYPTED = b"k8s:enc:"
_SCRATCH = "instar.dev/adopt/revision"
_AT_ONCE = 64
_CHUNK = 500


_CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")


class EtcdObject(NamedTuple):
    """An object as etcd has it."""

    key: str
    revision: int
    """etcd's, of its last write."""
    object: Object


class EtcdObjects:
    """The stored objects of a main cluster."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def revision(self) -> int:
        """Return etcd's revision now."""
        return await self._store.barrier()

    async def raise_above(self, least: int) -> None:
        """Raise etcd's revision by writes, so that no client sees a revision go down."""
        while (missing := least + 1 - await self._store.barrier()) > 0:
            number = min(missing, _AT_ONCE)
            writes = (self._set(f"{_SCRATCH}/{each}", b"{}\n") for each in range(number))
            await asyncio.gather(*writes)
        for record in (await self._store.range(_SCRATCH)).records:
            await self._set(record.key, None)

    async def put(self, crd: MovedCrd, objects: Iterable[tuple[str, Object]]) -> int:
        """Write objects by key unless they are there already; return how many were written."""
        waiting, written = list(objects), 0
        for start in range(0, len(waiting), _AT_ONCE):
            part = waiting[start : start + _AT_ONCE]
            done = await asyncio.gather(*(self._put(crd, key, obj) for key, obj in part))
            written += sum(done)
        return written

    async def remove(self, crd: MovedCrd, keys: Iterable[str]) -> None:
        """Delete the objects with these keys."""
        for key in keys:
            await self._set(_prefix(crd) + key, None)

    async def must_be_of(self, group: MovedGroup) -> None:
        """Raises ``AdoptError`` if this is the etcd of another cluster."""
        for crd in group.crds:
            record = await self._store.get(collection_prefix(*_CRDS) + crd.name)
            stored = _decoded(crd.name, record.value) if record else {"metadata": {}}
            if stored["metadata"].get("uid") != crd.uid:
                raise AdoptError(
                    f"--etcd: no CRD {crd.name} with the uid {crd.uid} is there: this is the etcd "
                    "of another cluster, or the prefix is another (etcd://HOST:PORT/PREFIX)"
                )

    async def keys(self, crd: MovedCrd) -> AsyncIterator[str]:
        """Yield the key (namespace/name) of each stored object."""
        async for found in self._records(crd):
            yield found.key.removeprefix(_prefix(crd))

    async def stored(self, crd: MovedCrd) -> AsyncIterator[EtcdObject]:
        """Yield each stored object. Raises ``AdoptError`` if one is encrypted."""
        async for found in self._records(crd):
            key = found.key.removeprefix(_prefix(crd))
            yield EtcdObject(key, found.revision, _decoded(f"{crd.name} {key}", found.value))

    async def remove_unchanged(self, crd: MovedCrd, revisions: Mapping[str, int]) -> None:
        """Delete objects by key. Raises ``AdoptError`` if one was written after the revision."""

        async def one(key: str, revision: int) -> None:
            try:
                await self._store.commit(Write(_prefix(crd) + key, None, revision))
            except Stale:
                if await self._store.get(_prefix(crd) + key) is not None:
                    raise AdoptError(f"{crd.name} {key} was written in etcd a moment ago") from None

        waiting = [*revisions.items()]
        for start in range(0, len(waiting), _AT_ONCE):
            await asyncio.gather(*(one(*each) for each in waiting[start : start + _AT_ONCE]))

    async def _records(self, crd: MovedCrd) -> AsyncIterator[Record]:
        prefix, start, more = _prefix(crd), "", True
        while more:
            page = await self._store.range(prefix, start=start, limit=_CHUNK)
            for record in page.records:
                yield record
            more = page.more
            start = page.records[-1].key + "\0" if page.records else ""

    async def _put(self, crd: MovedCrd, key: str, obj: Object) -> bool:
        metadata = {name: value for name, value in obj["metadata"].items() if name != _REVISION}
        wanted = {**obj, "metadata": metadata}
        record = await self._store.get(_prefix(crd) + key)
        if record is not None and _decoded(f"{crd.name} {key}", record.value) == wanted:
            return False
        value = orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS) + b"\n"
        await self._set(_prefix(crd) + key, value)
        return True

    async def _set(self, key: str, value: bytes | None) -> None:
        while True:
            record = await self._store.get(key)
            if record is None and value is None:
                return
            try:
                await self._store.commit(Write(key, value, record.revision if record else 0))
            except Stale:
                continue
            return


_REVISION = "resourceVersion"


def _decoded(what: str, value: bytes) -> Object:
    if value.startswith(_ENCRYPTED):
        raise AdoptError(f"{what} is encrypted in etcd, which --etcd cannot read or write")
    return dict(orjson.loads(value))


def _prefix(crd: MovedCrd) -> str:
    return collection_prefix(crd.group, crd.plural)
