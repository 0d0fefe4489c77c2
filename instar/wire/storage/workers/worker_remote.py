"""Store of a worker on etcd or PostgreSQL: reads and writes there directly; events come from the
first process.

Opened by ``wire/storage/open.py``. Values are in memory once for all processes, and only one
process watches etcd or PostgreSQL. Before a read, the worker gets the minimum revision from etcd or
PostgreSQL. ``worker_store.py`` is the connection to the first process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from instar.base.metrics import Metric
from instar.wire.storage.store import (
    Ended,
    MeasuredStore,
    Page,
    Past,
    Record,
    Remembering,
    Sink,
    Store,
    Subscription,
    Write,
)
from instar.wire.storage.workers.arena import ArenaView
from instar.wire.storage.workers.arena_reclaim import MoveListener
from instar.wire.storage.workers.worker_store import BorrowedStore

_LOOK_SECONDS = 0.005
_LOOK_AGAIN_SECONDS = 1.0


class RemoteConnection(Store, Remembering, Protocol):
    """The store that a worker connects to directly."""


class WorkerRemoteStore:
    """``ArenaReadingStore``: values and events from the first process, other calls go to etcd or
    PostgreSQL."""

    def __init__(self, cluster: RemoteConnection, lender: BorrowedStore) -> None:
        self._cluster = cluster
        self._lender = lender
        self._wanted = 0
        self._look: asyncio.TimerHandle | None = None

    # -- from the first process ----------------------------------------------------------------

    @property
    def arena(self) -> ArenaView:
        return self._lender.arena

    @property
    def moved(self) -> MoveListener:
        return self._lender.moved

    @moved.setter
    def moved(self, moved: MoveListener) -> None:
        self._lender.moved = moved

    async def state(self, revision: int = 0) -> Page:
        return await self._lender.state(revision)

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        return self._lender.subscribe(after, sink, ended)

    async def lost(self) -> None:
        await self._lender.lost()

    def seen(self) -> int:
        return self._lender.current()

    # -- from the cluster ----------------------------------------------------------------------

    async def get(self, key: str) -> Record | None:
        return await self._cluster.get(key)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        return await self._cluster.range(prefix, start=start, limit=limit, revision=revision)

    async def commit(self, write: Write) -> int:
        revision = await self._cluster.commit(write)
        self._expect(revision)
        return revision

    async def barrier(self) -> int:
        revision = await self._cluster.barrier()
        self._expect(revision)
        return revision

    async def past(self, key: str, *, before: int = 0, limit: int = 0) -> Past:
        return await self._cluster.past(key, before=before, limit=limit)

    def metrics(self) -> Sequence[Metric]:
        return self._cluster.metrics() if isinstance(self._cluster, MeasuredStore) else ()

    async def compact(self, revision: int) -> None:
        await self._cluster.compact(revision)

    async def close(self) -> None:
        if self._look is not None:
            self._look.cancel()
        await self._lender.close()
        await self._cluster.close()

    def _expect(self, revision: int) -> None:
        """Ask the first process to reach this revision, unless its event arrives soon."""
        self._wanted = max(self._wanted, revision)
        if self._look is None and self._lender.reached < self._wanted:
            loop = asyncio.get_running_loop()
            self._look = loop.call_later(_LOOK_SECONDS, self._request_revision)

    def _request_revision(self) -> None:
        self._look = None
        if self._lender.reached < self._wanted:
            self._lender.expect(self._wanted)
            loop = asyncio.get_running_loop()
            self._look = loop.call_later(_LOOK_AGAIN_SECONDS, self._request_revision)
