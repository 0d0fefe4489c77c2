"""Serves the watch cache of the process that owns the store to its worker processes.

``wire/storage/workers/store_server.py`` sends the pages and events of this feed to the workers. A
page or an event carries the arena location of an object instead of its bytes, and comes from the
cache, not from the store.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import itemgetter

from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.shared_entry import OwnedEntryFactory, place_of
from instar.wire.storage.event_followers import Followers
from instar.wire.storage.keys import collection_of, in_layout
from instar.wire.storage.store import (
    Compacted,
    Ended,
    Event,
    Page,
    Record,
    Sink,
    Subscription,
    Unavailable,
)
from instar.wire.storage.watchcache.cache import Cache
from instar.wire.storage.workers.arena_reclaim import ArenaReference, Move

_MOST_BYTES = 4 << 20
"""Bytes of values outside the arena in one page."""


class WorkerFeed:
    """State and events of a cache of ``OwnedEntry``s."""

    def __init__(self, cache: Cache[CacheEntry], factory: OwnedEntryFactory) -> None:
        self._cache = cache
        self._factory = factory
        self._followers = Followers()
        self.reached: Callable[[int], None] = lambda revision: None
        cache.on_events(self._on_events)
        cache.on_reset(self._on_reload)

    def move(self, key: str, place: int) -> Move | None:
        return self._factory.move(self._cache.entry(key), key, place)

    def state(self, start: str, limit: int, revision: int) -> Page:
        """Return a page of the objects at ``revision``. A cache that is behind returns what it has;
        the rest follows as events."""
        self._check()
        cache = self._cache
        at = min(revision or cache.revision, cache.revision)
        known = {each.prefix: each for each in cache.collections()}
        oldest = max((each.complete_since for each in known.values()), default=0)
        if at < oldest:
            raise Compacted(oldest)
        prefixes, records, carried = sorted(known), list[Record](), 0
        first = collection_of(start) if start else ""
        for prefix in prefixes[bisect_left(prefixes, first) :]:
            low = start[len(prefix) :] if prefix == first else ""
            for suffix, entry in known[prefix].as_of(at, start=low):
                if len(records) == limit or carried > _MOST_BYTES:
                    return Page(records, at, True)
                value = _value(entry)
                carried += len(value)
                records.append(Record(prefix + suffix, value, entry.revision))
        return Page(records, at, False)

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        self._check()
        past = [
            (change.revision, each.prefix + change.suffix, change.new)
            for each in self._cache.collections()
            for change in each.changes_after(after)
        ]
        past.sort(key=itemgetter(0))
        events = [
            Event(key, None if entry is None else _value(entry), revision)
            for revision, key, entry in past
        ]
        follower = self._followers.add(after, sink, ended, ())
        follower.take(events, self._cache.revision)
        return follower

    def _on_events(self, events: Sequence[Event], revision: int) -> None:
        self.reached(revision)
        if self._followers:
            located = [self._located(event) for event in events if in_layout(event.key)]
            self._followers.publish(located, revision)

    def _located(self, event: Event) -> Event:
        """Replace the value of an event by its arena location, unless the object was replaced
        already."""
        place = place_of(self._cache.entry(event.key), event.revision)
        return event if place is None else event._replace(value=ArenaReference.at(place))

    def _on_reload(self) -> None:
        self.reached(self._cache.revision)
        self._followers.end(Unavailable("the process that owns the store has reloaded its cache"))

    def _check(self) -> None:
        if self._cache.failure is not None:
            raise Unavailable(str(self._cache.failure))


def _value(entry: CacheEntry) -> bytes:
    place = place_of(entry, entry.revision)
    if place is not None:
        return ArenaReference.at(place)
    return entry.raw if entry.raw is not None else entry.stored() + b"\n"
