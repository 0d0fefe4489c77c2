"""Facts of stored objects that garbage collection needs, cached while the object is unchanged.

``collector.py`` and ``graph.py`` call it. An owner is examined for each of its dependents and may
be large, so it is decoded once, and in a thread if it is large.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import orjson

from instar.base import offload
from instar.base.json_values import Object
from instar.server.registry.controllers.garbage.owner_graph import (
    FOREGROUND,
    OwnerGraphNode,
    OwnerReference,
    references,
)
from instar.server.registry.stored.entry import CacheEntry

_UID = re.compile(rb'"uid":"([^"\\]{1,128})"')
_REMEMBERED = 10_000


class Involved(NamedTuple):
    """An object as an Event names it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class ObjectFacts(NamedTuple):
    """Name, uid, deletion and finalizers of a stored object."""

    involved: Involved
    deleted: bool
    finalizers: tuple[str, ...]

    @property
    def uid(self) -> str:
        return self.involved.uid

    @property
    def waits(self) -> bool:
        """Whether it is in foreground deletion and waits for its dependents."""
        return self.deleted and FOREGROUND in self.finalizers


class ReadObject(NamedTuple):
    """The facts of a decoded object and its owner references."""

    facts: ObjectFacts
    references: tuple[OwnerReference, ...]


class FactsOfObjects:
    """Cache of the facts of the latest objects."""

    def __init__(self) -> None:
        self._kept: dict[OwnerGraphNode, tuple[CacheEntry, ObjectFacts]] = {}

    async def of(self, node: OwnerGraphNode, entry: CacheEntry) -> ObjectFacts:
        kept = self._kept.get(node)
        if kept is not None and kept[0] is entry:
            return kept[1]
        return (await self.read(node, entry)).facts

    async def read(self, node: OwnerGraphNode, entry: CacheEntry) -> ReadObject:
        """Decode the entry. Its references are not cached."""
        found = await offload.run(entry.size, partial(read_object, entry.json()))
        self._keep(node, entry, found.facts)
        return found

    def read_now(self, node: OwnerGraphNode, entry: CacheEntry) -> ReadObject:
        """Decode a small entry at once."""
        found = read_object(entry.json())
        self._keep(node, entry, found.facts)
        return found

    def forget(self, node: OwnerGraphNode) -> None:
        self._kept.pop(node, None)

    def clear(self) -> None:
        self._kept.clear()

    def _keep(self, node: OwnerGraphNode, entry: CacheEntry, facts: ObjectFacts) -> None:
        self._kept.pop(node, None)
        self._kept[node] = (entry, facts)
        if len(self._kept) > _REMEMBERED:
            del self._kept[next(iter(self._kept))]


def read_object(data: bytes) -> ReadObject:
    """Decode an object's JSON; bytes that are no object (foreign or damaged) have no facts."""
    try:
        obj = orjson.loads(data)
    except orjson.JSONDecodeError:
        obj = None
    if not isinstance(obj, dict) or not isinstance(metadata := obj.get("metadata"), dict):
        return ReadObject(_facts({}, {}), ())
    return ReadObject(_facts(obj, metadata), references(metadata))


def _facts(obj: Object, metadata: Object) -> ObjectFacts:
    finalizers = metadata.get("finalizers")
    involved = Involved(
        str(obj.get("apiVersion", "")),
        str(obj.get("kind", "")),
        str(metadata.get("namespace", "")),
        str(metadata.get("name", "")),
        str(metadata.get("uid", "")),
    )
    listed = finalizers if isinstance(finalizers, list) else ()
    return ObjectFacts(involved, "deletionTimestamp" in metadata, tuple(map(str, listed)))


def mentioned_uids(data: bytes) -> Iterable[str]:
    """Return every uid in an object's JSON, its own among them, without decoding it."""
    return {found.decode("utf-8", "replace") for found in _UID.findall(data)}
