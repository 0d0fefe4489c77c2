"""Searches for owners in other namespaces, which cannot own the object, and writes an Event for
each.

``graph.py`` calls it and does not wait for the result. There is no index of uids, so a search scans
all objects of the owner's kind. One scan, done in slices, answers all pending look-ups of that
kind, and a pause ten times as long follows. So the search uses at most a tenth of one processor,
however many references point to missing owners.
"""

from __future__ import annotations

from time import monotonic

from instar.base import offload
from instar.base.supervision import rest
from instar.server.registry.controllers.garbage.events import write_cross_namespace_event
from instar.server.registry.controllers.garbage.object_facts import (
    Involved,
    mentioned_uids,
    read_object,
)
from instar.server.registry.controllers.garbage.owner_graph import OwnerGraphNode, OwnerReference
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import CollectionReloaded

PART = "garbage-collector-strays"
_ABSENT_KEPT = 10_000
_MOST_WAITING = 10_000
"""Pending look-ups; further ones are dropped, and no Event is written for them."""
_MOST_TOLD = 25
"""Events per object, as upstream's recorder allows."""
_REST = 10.0
_LONGEST_REST = 60.0


class ForeignOwnerSearch:
    """Finds owners in other namespaces in the background."""

    def __init__(self, context: Context, catalog: Catalog) -> None:
        self._context, self._catalog = context, catalog
        self._absent: dict[str, None] = {}
        """The latest uids known not to exist; a uid never comes back."""
        self._told: dict[OwnerGraphNode, set[str]] = {}
        """References across namespaces that an Event was written for, or will be."""
        self._questions: dict[str, _Question] = {}
        """By the prefix of the owners' collection."""
        self._waiting = 0
        self._searching = False

    def ask(
        self, owners: Resource, node: OwnerGraphNode, involved: Involved, reference: OwnerReference
    ) -> None:
        """Have the owner searched in other namespaces; if it is there, an Event is written."""
        told = self._told.get(node, ())
        if reference.uid in self._absent or reference.uid in told or len(told) >= _MOST_TOLD:
            return
        if not owners.serving.namespaced or self._waiting >= _MOST_WAITING:
            return
        self._told.setdefault(node, set()).add(reference.uid)
        question = self._questions.setdefault(owners.objects.prefix, _Question(owners))
        question.sought.setdefault(reference.uid, []).append((involved, reference))
        self._waiting += 1
        if not self._searching:
            self._searching = True
            self._context.supervision.keep(PART, self._search)

    def note_absent(self, uid: str) -> None:
        self._absent[uid] = None
        if len(self._absent) > _ABSENT_KEPT:
            del self._absent[next(iter(self._absent))]

    def forget(self, node: OwnerGraphNode) -> None:
        self._told.pop(node, None)

    async def _search(self) -> None:
        while self._questions:
            began = monotonic()
            question = self._questions.pop(next(iter(self._questions)))
            self._waiting -= sum(map(len, question.sought.values()))
            await self._look_through(question)
            await rest(min((monotonic() - began) * _REST, _LONGEST_REST))
        self._searching = False

    async def _look_through(self, question: _Question) -> None:
        sought, breaks = question.sought, offload.Breaks()
        try:
            async for part in question.owners.objects.slices():
                for _, entry in part:
                    for uid in _uids_in(entry, sought):
                        await self._write_events(sought.pop(uid))
                    await breaks.between()
        except CollectionReloaded:
            return  # then everything is started over
        for uid in sought:
            self.note_absent(uid)

    async def _write_events(self, strays: list[tuple[Involved, OwnerReference]]) -> None:
        events = self._catalog.builtin("", "events")
        for involved, reference in strays:
            await write_cross_namespace_event(self._context, events, involved, reference)


class _Question:
    """Uids that are searched among the objects of one kind, with the references to each."""

    def __init__(self, owners: Resource) -> None:
        self.owners = owners
        self.sought: dict[str, list[tuple[Involved, OwnerReference]]] = {}


def _uids_in(
    entry: CacheEntry, sought: dict[str, list[tuple[Involved, OwnerReference]]]
) -> list[str]:
    """Return the entry's uid if it is searched: the bytes may contain other uids, too."""
    data = entry.json()
    if not any(uid in sought for uid in mentioned_uids(data)):
        return []
    uid = read_object(data).facts.uid
    return [uid] if uid in sought else []
