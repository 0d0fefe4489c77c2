"""History floor: the revision at which the history of a store begins for clients that come from
another server.

``adopted_group.py`` sets it. Revisions of the other server are below it, so a watch or list with
one of them gets 410 and its client lists again, instead of silence or the history of other writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from instar.base.errors import Unclassified
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.store import (
    Event,
    RaisableStore,
    Stale,
    Store,
    StoreError,
    Write,
    unwrapped_store,
)

FLOOR = "adoption/floor"
_SCRATCH = "adoption/raised"
_MOST_WRITES = 100_000
"""Writes that raise the revision of a store where nothing else does."""
_AT_ONCE = 128


class HistoryFloor:
    """Raises the revision of a store, and forgets the history below it in this process and, by the
    event of its record, in every other one that shares the store."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        backend.cache.on_events(self._follow)

    async def raise_above(self, least: int) -> None:
        """Give later writes revisions above ``least``. Raises ``Unclassified`` if that is too far
        for a store whose revision rises by writes alone."""
        store = self._backend.store
        if await store.barrier() > least:
            return
        bare = unwrapped_store(store)
        if isinstance(bare, RaisableStore):
            await bare.raise_revision(least)
        else:
            await _raise_by_writes(store, least)

    async def set(self, least: int) -> int:
        """Raise the revision above ``least``, begin history there, and return the floor."""
        await self.raise_above(least)
        floor = await _put(self._backend.store, FLOOR, b"{}\n")
        self._backend.cache.compacted(floor)
        await self._backend.store.compact(floor)
        await self._backend.consistent()
        return floor

    def _follow(self, events: Sequence[Event], revision: int) -> None:
        for event in events:
            if event.key == FLOOR:
                self._backend.cache.compacted(event.revision)


async def _raise_by_writes(store: Store, least: int) -> None:
    missing = least - await store.barrier()
    if missing > _MOST_WRITES:
        raise Unclassified(
            f"the revision of this etcd is {missing:,} below that of the main cluster, too far to "
            "be reached by writes: start it from a snapshot restored with etcdutl snapshot "
            f"restore --bump-revision {missing + _MOST_WRITES} --mark-compacted"
        )
    while (missing := least - await store.barrier()) >= 0:
        number = min(missing + 1, _AT_ONCE)
        keys = [f"{_SCRATCH}/{each}" for each in range(number)]
        await asyncio.gather(*(_put(store, key, b"{}\n") for key in keys))


async def _put(store: Store, key: str, value: bytes) -> int:
    while True:
        record = await store.get(key)
        try:
            return await store.commit(Write(key, value, 0 if record is None else record.revision))
        except Stale:
            continue


async def put_record(store: Store, key: str, value: bytes | None) -> None:
    """Set a record of an adoption, or delete it. Raises ``StoreError``."""
    if value is not None:
        await _put(store, key, value)
        return
    record = await store.get(key)
    if record is not None:
        try:
            await store.commit(Write(key, None, record.revision))
        except Stale as error:
            raise StoreError(f"{key} was written by another process") from error
