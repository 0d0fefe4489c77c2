"""What the process that lends objects tells those who borrow them: how things stand and stood, and
what happens from then on, all of it as its own cache knows it.

Nobody asks the store for that again: what the cache holds is in memory already, and a place can be
told in its stead. Knows which entries are lent; sends nothing.
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
from instar.wire.storage.workers.arena_reclaim import Elsewhere, Move

_MOST_BYTES = 4 << 20
"""Of values that are not lent, in one page."""


class CacheBooks:
    """``Books`` of a cache whose entries a ``OwnedEntryFactory`` makes."""

    def __init__(self, cache: Cache[CacheEntry], lender: OwnedEntryFactory) -> None:
        self._cache = cache
        self._lender = lender
        self._followers = Followers()
        self.reached: Callable[[int], None] = lambda revision: None
        cache.on_events(self._happened)
        cache.on_reset(self._loaded_anew)

    def move(self, key: str, place: int) -> Move | None:
        return self._lender.move(self._cache.entry(key), key, place)

    def state(self, start: str, limit: int, revision: int) -> Page:
        """A cache that is behind tells what it has: the rest is told to who follows."""
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

    def _happened(self, events: Sequence[Event], revision: int) -> None:
        self.reached(revision)
        if self._followers:
            told = [self._told(event) for event in events if in_layout(event.key)]
            self._followers.publish(told, revision)

    def _told(self, event: Event) -> Event:
        """What was written over at once is lent no more."""
        place = place_of(self._cache.entry(event.key), event.revision)
        return event if place is None else event._replace(value=Elsewhere.at(place))

    def _loaded_anew(self) -> None:
        self.reached(self._cache.revision)
        self._followers.end(Unavailable("the process that lends the objects has read them anew"))

    def _check(self) -> None:
        if self._cache.failure is not None:
            raise Unavailable(str(self._cache.failure))


def _value(entry: CacheEntry) -> bytes:
    place = place_of(entry, entry.revision)
    if place is not None:
        return Elsewhere.at(place)
    return entry.raw if entry.raw is not None else entry.stored() + b"\n"
