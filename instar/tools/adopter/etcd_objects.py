"""Writes objects into the main cluster's etcd as they are, with uid, times and generation.

``return_group.py`` calls it with ``--etcd``, while the group is routed to instar, so that no
request of the main cluster reads what is half written. Encrypted values are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import orjson

from instar.base.json_values import Object
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.moved_group import MovedCrd
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.store import Stale, Store, Write

_ENCRYPTED = b"k8s:enc:"
_SCRATCH = "instar.dev/adopt/revision"
_AT_ONCE = 64
_CHUNK = 500


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

    async def keys(self, crd: MovedCrd) -> AsyncIterator[str]:
        """Yield the key (namespace/name) of each stored object."""
        prefix, start, more = _prefix(crd), "", True
        while more:
            page = await self._store.range(prefix, start=start, limit=_CHUNK)
            for record in page.records:
                yield record.key.removeprefix(prefix)
            more = page.more
            start = page.records[-1].key + "\0" if page.records else ""

    async def _put(self, crd: MovedCrd, key: str, obj: Object) -> bool:
        metadata = {name: value for name, value in obj["metadata"].items() if name != _REVISION}
        wanted = {**obj, "metadata": metadata}
        record = await self._store.get(_prefix(crd) + key)
        if record is not None:
            if record.value.startswith(_ENCRYPTED):
                raise AdoptError(
                    f"{crd.name} {key} is encrypted in etcd: return the group without --etcd"
                )
            if orjson.loads(record.value) == wanted:
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


def _prefix(crd: MovedCrd) -> str:
    return collection_prefix(crd.group, crd.plural)
