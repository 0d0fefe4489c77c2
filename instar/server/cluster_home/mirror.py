"""A read-only copy of collections of the main cluster, in the form in which this server keeps its
own objects.

``home.py`` makes it. Admission plugins, the catalog and request views read it like collections of
the server's own store, so that one implementation of a rule serves both homes. Only followers
(``following.py``) and live lookups (``namespaces.py``) write to it. Its revisions are its own and
are shown to no client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from instar.base import offload
from instar.base.json_values import Object
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.compactor import Compactor, HistoryLimits
from instar.wire.storage.keys import collection_prefix
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Write

_HISTORY_SECONDS = 30.0
_HISTORY_BYTES = 8 << 20
Selects = Callable[[Object], bool]


class Mirror:
    """A store in memory, with the watch cache that readers use."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.backend = Backend(self.store)

    def compactor(self) -> Compactor:
        return Compactor(
            self.store,
            keep=_HISTORY_SECONDS,
            most=HistoryLimits(_HISTORY_BYTES),
            compacted=self.backend.cache.compacted,
        )


class MirroredCollection:
    """The objects of one kind: the sink of a follower."""

    def __init__(
        self,
        mirror: Mirror,
        group: str,
        plural: str,
        identity: tuple[str, str],
        selects: Selects = lambda obj: True,
    ) -> None:
        """``identity``: apiVersion and kind, which objects of a list lack. Only objects that
        ``selects`` accepts are kept."""
        self._store = mirror.store
        self._objects = mirror.backend.collection(collection_prefix(group, plural))
        self._identity, self._selects = identity, selects
        self._revisions: dict[str, int] = {}
        """The main cluster's revision of each object that is kept."""

    async def replace(self, objects: Iterable[Object]) -> None:
        self._revisions.clear()  # a main cluster that was restored may count from a lower number
        gone = set(self._objects.entries)
        breaks = offload.Breaks()
        for obj in objects:
            gone.discard(_suffix(obj))
            await self.put(obj)
            await breaks.between()
        for suffix in gone:
            await self._remove(suffix)

    async def put(self, obj: Object) -> None:
        suffix, revision = _suffix(obj), _revision(obj)
        if not self._selects(obj):
            await self._remove(suffix)
            return
        if revision <= self._revisions.get(suffix, -1):
            return  # seen already, or overtaken by a live lookup
        self._revisions[suffix] = revision
        await self._write(suffix, self._stored(obj))

    async def drop(self, obj: Object) -> None:
        suffix = _suffix(obj)
        if _revision(obj) >= self._revisions.get(suffix, -1):
            await self._remove(suffix)

    async def forget(self, suffix: str) -> None:
        """Remove an object that a live lookup did not find."""
        await self._remove(suffix)

    async def _remove(self, suffix: str) -> None:
        self._revisions.pop(suffix, None)
        await self._write(suffix, None)

    async def _write(self, suffix: str, value: bytes | None) -> None:
        key = self._objects.prefix + suffix
        record = await self._store.get(key)
        if (None if record is None else record.value) == value:
            return
        await self._store.commit(Write(key, value, 0 if record is None else record.revision))

    def _stored(self, obj: Object) -> bytes:
        api_version, kind = self._identity
        left_out = ("resourceVersion", "managedFields")
        metadata = {key: each for key, each in obj["metadata"].items() if key not in left_out}
        shown: Any = {**obj, "apiVersion": api_version, "kind": kind, "metadata": metadata}
        return orjson.dumps(shown, option=orjson.OPT_SORT_KEYS) + b"\n"


def _suffix(obj: Object) -> str:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _revision(obj: Object) -> int:
    text = str(obj["metadata"].get("resourceVersion") or "")
    return int(text) if text.isascii() and text.isdigit() else 0
