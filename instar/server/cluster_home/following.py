"""Follows one collection of the main cluster by list and watch, and passes what it sees to a sink.

``views.py`` runs a ``ClusterFollower`` as a background task for each collection, ``home.py`` for
the ConfigMap with certificates, ``params.py`` for the kinds that policies name. A follower retries
forever, because the server goes on with what it has seen; ``MainCluster.trouble`` tells that it may
be out of date.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from instar.base.errors import ApiError, NotFound
from instar.base.json_values import Object
from instar.base.supervision import note_progress, resting
from instar.server.cluster_home.main_cluster import MainCluster
from instar.wire.client.reflector import CollectionState, follow

_SILENCE_SECONDS = 150.0
"""An API server sends a bookmark each minute."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_UNSERVED_SECONDS = 60.0
"""Pause before the next look for a kind that the main cluster does not serve."""


class FollowerSink(Protocol):
    """Keeps the objects of a collection."""

    async def replace(self, objects: Iterable[Object]) -> None:
        """Keep these objects and no others."""
        ...

    async def put(self, obj: Object) -> None: ...

    async def drop(self, obj: Object) -> None: ...


class ClusterFollower:
    """Keeps a sink current. The first of ``paths`` that the main cluster serves is followed, so
    that a kind may be served at different versions there."""

    def __init__(
        self,
        cluster: MainCluster,
        name: str,
        paths: Sequence[str],
        sink: FollowerSink,
        field_selector: str | None = None,
    ) -> None:
        self.name = name
        self.synced = asyncio.Event()
        """Set once the sink has the whole collection."""
        self.failure = ""
        """Why the collection is not followed now."""
        self._cluster, self._paths, self._sink = cluster, tuple(paths), sink
        self._field_selector = field_selector

    async def run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._follow_served()
            except ApiError as error:
                self._failed(error)
            with resting():
                await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _follow_served(self) -> None:
        for path in self._paths:
            try:
                await self._follow(path)
            except NotFound:
                continue
        await self._sink.replace(())
        self._take_state()
        with resting():
            await asyncio.sleep(_UNSERVED_SECONDS)

    async def _follow(self, path: str) -> None:
        changes = follow(
            self._cluster.following,
            path,
            failed=self._failed,
            silence=_SILENCE_SECONDS,
            fieldSelector=self._field_selector,
        )
        with resting():
            async for change in changes:
                note_progress()
                if isinstance(change, CollectionState):
                    await self._sink.replace(change.items)
                    self._take_state()
                elif change.type == "DELETED":
                    await self._sink.drop(change.object)
                else:
                    await self._sink.put(change.object)

    def _take_state(self) -> None:
        self.failure = ""
        self._cluster.note(self.name, None)
        self.synced.set()

    def _failed(self, error: Exception) -> None:
        self.failure = error.message if isinstance(error, ApiError) else str(error)
        self._cluster.note(self.name, error)
