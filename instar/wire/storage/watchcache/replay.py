"""Fills collections of the watch cache from a local store's log at start.

Called by ``cache.py``. The module loads the state at the beginning of the log and replays the last
changes, so that watches and list pages from before a restart continue. The replay works in slices,
so that the event loop serves requests while millions of writes are read. Changes older than any
window are not replayed; only their result is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Generic

from instar.wire.storage.keys import collection_of
from instar.wire.storage.store import Local, Record, Seal
from instar.wire.storage.watchcache.collection import Change, Collection, E, Ingest

_SLICE_SECONDS = 0.008
_WRITES_PER_CHECK = 32
"""Writes between two checks of the clock: each may be as large as a request."""


async def replay(
    store: Local, collections: Iterable[Collection[E]], ingest: Ingest[E], until: int, window: int
) -> None:
    """Fill the collections as of revision ``until``, with at most ``window`` changes before it."""
    counts, compacted = store.counts(), store.compacted
    fillings = {
        each.prefix: _Filling(
            each, ingest, compacted, counts.get(each.prefix, 0) - window, store.names(each.prefix)
        )
        for each in collections
    }
    turn = monotonic() + _SLICE_SECONDS
    last, filling = "\0", None
    for number, write in enumerate(store.log(until, fillings.keys())):
        if filling is None or not write[0].startswith(last):
            last = collection_of(write[0])
            filling = fillings[last]
            if last == write[0]:
                # a key outside the layout is a collection of one; its prefix may begin other keys
                last = "\0"
        filling.take(*write)
        if number % _WRITES_PER_CHECK == 0 and monotonic() > turn:
            await asyncio.sleep(0)
            turn = monotonic() + _SLICE_SECONDS
    for each in fillings.values():
        each.load()
        await asyncio.sleep(0)


class _Filling(Generic[E]):
    """One collection while it is filled."""

    def __init__(
        self,
        collection: Collection[E],
        ingest: Ingest[E],
        compacted: int,
        early: int,
        names: Iterator[tuple[str, int]],
    ) -> None:
        self._collection, self._ingest = collection, ingest
        self._cut = len(collection.prefix)
        self._compacted = self._since = compacted
        self._early = early
        """Number of writes to come that are too old for the window."""
        self._state: dict[str, E] | None = {}
        self._names = names
        self._name, self._number = next(names, ("", 0))

    def take(self, key: str, value: bytes | None, revision: int, seal: Seal | None) -> None:
        name = key[self._cut :]
        if name == self._name and revision == self._number:
            # Use the store's own string and number, so that memory holds them once.
            name, revision = self._name, self._number
            self._name, self._number = next(self._names, ("", 0))
        new = None
        if value is not None:
            new = self._ingest(Record(key, value, revision, seal), name)
        early, state = self._early, self._state
        self._early = early - 1
        if state is None or (early <= 0 and revision > self._compacted):
            self._live_through(revision, name, new)
        else:
            self._since = max(self._since, revision)
            if new is None:
                state.pop(name, None)
            else:
                state[name] = new

    def load(self) -> None:
        if self._state is not None:
            self._collection.load(self._state, self._since)
            self._state = None

    def _live_through(self, revision: int, name: str, new: E | None) -> None:
        self.load()
        entries = self._collection.entries
        self._collection.apply(Change(revision, name, new, entries.get(name)))
