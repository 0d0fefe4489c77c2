"""One collection of the watch cache: current entries in key order and a window of changes.

Filled by ``cache.py``; read by the registry's list and watch verbs, controllers and admission
plugins. The collection works on keys and revisions; the caller defines the type of an entry.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from heapq import merge
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Generic, NamedTuple, Protocol, TypeVar

from sortedcontainers import SortedList

from instar.base.fast_dataclass import dataclass
from instar.base.supervision import report_failure
from instar.wire.storage.store import Compacted, Record, Unavailable


class Sized(Protocol):
    """Entry of a collection: has a revision and an approximate memory size."""

    @property
    def revision(self) -> int: ...

    @property
    def size(self) -> int: ...

    def replaced(self) -> None:
        """Called when a newer entry replaces this one; the old one stays in the window."""


E = TypeVar("E", bound=Sized)
Ingest = Callable[[Record, str], E]
"""(record, key below the collection as a shared string) → entry."""


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """Limits of the window of recent changes, per collection, for watches and list pages."""

    events: int = 100_000
    bytes: int = 64 << 20


_REVISION = attrgetter("revision")
_SLICE = 10_000
"""Entries yielded per iteration of the event loop."""


class CollectionReloaded(Unavailable):
    """Everything was reloaded during the iteration: the remaining entries are unknown."""

    def __init__(self) -> None:
        super().__init__("it is being read anew")


class Change(NamedTuple, Generic[E]):
    """One committed write as a watcher sees it: ``new`` is None for a deletion."""

    revision: int
    suffix: str
    new: E | None
    old: E | None


Listener = Callable[["Change[E]"], None]


class Collection(Generic[E]):
    """The objects of one resource: entries by key suffix, sorted, with a window of changes."""

    def __init__(self, prefix: str, complete_since: int, limits: WindowLimits) -> None:
        self.prefix = prefix
        self.entries: dict[str, E] = {}
        self.keys: SortedList[str] = SortedList()
        self.window: deque[Change[E]] = deque()
        self.complete_since = complete_since
        """All changes above this revision are in the window."""
        self.listeners: list[Listener[E]] = []
        """Called with every change; if one raises, the cache is reloaded."""
        self.observers: list[Listener[E]] = []
        """Controllers and the like, called after the listeners; if one raises, that is counted
        and the others are called."""
        self.state = object()
        """Identity of the current content; replaced on every change."""
        self._limits = limits
        self._window_bytes = 0

    def load(self, entries: dict[str, E], revision: int) -> None:
        """Replace the content by a full read; the window is cleared, as it is no longer
        continuous."""
        self.state = object()
        self.entries = entries
        self.keys = SortedList(entries)
        self.window.clear()
        self._window_bytes = 0
        self.complete_since = revision

    def apply(self, change: Change[E]) -> None:
        suffix, new = change.suffix, change.new
        self.state = object()
        if change.old is not None:
            change.old.replaced()
        if new is None:
            if self.entries.pop(suffix, None) is not None:
                self.keys.remove(suffix)
        else:
            if suffix not in self.entries:
                self.keys.add(suffix)
            self.entries[suffix] = new
        self.window.append(change)
        self._window_bytes += change.old.size if change.old is not None else 64
        while len(self.window) > self._limits.events or self._window_bytes > self._limits.bytes:
            self._forget_oldest()
        for listener in tuple(self.listeners):
            listener(change)
        for observer in tuple(self.observers):
            try:
                observer(change)
            except Exception as error:
                report_failure("controller-events", error, self.prefix + suffix)

    def forget_until(self, revision: int) -> None:
        """Drop changes at and below ``revision`` (compaction)."""
        while self.window and self.window[0].revision <= revision:
            self._forget_oldest()
        self.complete_since = max(self.complete_since, revision)

    def has_nothing_since(self, revision: int) -> bool:
        """Return whether a new collection complete since ``revision`` would be equivalent."""
        return not self.entries and not self.window and self.complete_since <= revision

    def _forget_oldest(self) -> None:
        gone = self.window.popleft()
        self._window_bytes -= gone.old.size if gone.old is not None else 64
        self.complete_since = max(self.complete_since, gone.revision)

    @property
    def latest_revision(self) -> int:
        """The revision of the last change, or one behind which there was none."""
        return self.window[-1].revision if self.window else self.complete_since

    def replace_in_window(self, after: int, most: int, newer: Callable[[E], E]) -> int:
        """Let at most ``most`` changes above revision ``after`` refer to ``newer(entry)``, which
        must be the same object in another form. Return the last one's revision; 0 if there is
        none."""
        window = self.window
        first = bisect_right(window, after, key=_REVISION)
        behind = min(first + most, len(window))
        for position in range(first, behind):
            change = window[position]
            new = None if change.new is None else newer(change.new)
            old = None if change.old is None else newer(change.old)
            if new is not change.new or old is not change.old:
                window[position] = change._replace(new=new, old=old)
        return window[behind - 1].revision if behind > first else 0

    def suffixes(self, below: str = "", start: str = "") -> Iterator[str]:
        """Yield key suffixes in order that start with ``below``, from ``start`` on."""
        if not below and not start:
            return iter(self.keys)
        low = max(below, start)
        high = below + "\U0010ffff" if below else None
        return iter(self.keys.irange(low, high))

    def changes_after(self, revision: int) -> list[Change[E]]:
        """Return changes above ``revision``. Raises ``Compacted`` if the window starts later."""
        if revision < self.complete_since:
            raise Compacted(self.complete_since)
        recent: list[Change[E]] = []
        for change in reversed(self.window):
            if change.revision <= revision:
                break
            recent.append(change)
        recent.reverse()
        return recent

    def as_of(self, revision: int, below: str = "", start: str = "") -> Iterator[tuple[str, E]]:
        """Yield entries in key order as of ``revision``: the current ones with later changes
        undone.

        Consume it without awaiting in between. Raises ``Compacted`` before yielding anything.
        """
        undone = self._undone(revision)
        gone = sorted(
            suffix
            for suffix, old in undone.items()
            if old is not None and suffix.startswith(below) and suffix >= start
        )
        unchanged = (suffix for suffix in self.suffixes(below, start) if suffix not in undone)
        return self._entries_of(merge(unchanged, gone), undone)

    def _entries_of(
        self, suffixes: Iterable[str], undone: dict[str, E | None]
    ) -> Iterator[tuple[str, E]]:
        for suffix in suffixes:
            entry = undone.get(suffix) or self.entries[suffix]
            yield suffix, entry

    async def slices(
        self, below: str = "", start: str = "", revision: int | None = None
    ) -> AsyncGenerator[list[tuple[str, E]], None]:
        """Yield entries in key order as they are now, or as of ``revision``, a few thousand per
        iteration of the event loop. Changes made meanwhile are undone.

        Raises ``Compacted`` where the window starts later, ``CollectionReloaded`` after a reload.
        """
        undone = {} if revision is None else self._undone(revision)

        def note(change: Change[E]) -> None:
            undone.setdefault(change.suffix, change.old)

        entries, low, more = self.entries, max(below, start), True
        self.listeners.append(note)
        try:
            while more:
                if self.entries is not entries:  # everything was reloaded
                    raise CollectionReloaded
                names = list(islice(self.suffixes(below, low), _SLICE))
                more = len(names) == _SLICE
                high = names[-1] if more else below + "\U0010ffff"
                found = [(name, entries[name]) for name in names if name not in undone]
                past = [
                    (name, old)
                    for name, old in undone.items()
                    if old is not None and low <= name <= high and name.startswith(below)
                ]
                if past:
                    found = sorted([*found, *past], key=itemgetter(0))
                yield found
                low = high + "\0"
                await asyncio.sleep(0)
        finally:
            self.listeners.remove(note)

    async def gather(self, below: str = "") -> list[E]:
        """Return all entries of ``slices``. Raises ``CollectionReloaded``."""
        found: list[E] = []
        async for part in self.slices(below):
            found += [entry for _, entry in part]
        return found

    def page_as_of(
        self, revision: int, below: str, start: str, limit: int
    ) -> tuple[list[E], str, int]:
        """Return at most ``limit`` entries as of ``revision``, the last one's name, and how many
        followed it. Raises ``Compacted``."""
        page = list(islice(self.as_of(revision, below, start), limit))
        if not page:
            return [], "", 0
        last = page[-1][0]
        after = last + "\0"
        follow = self.count(below) - self.keys.bisect_left(after) + self.keys.bisect_left(below)
        for name, old in self._undone(revision).items():
            if name > last and name.startswith(below):
                follow += (old is not None) - (name in self.entries)
        return [entry for _, entry in page], last, follow

    def _undone(self, revision: int) -> dict[str, E | None]:
        """Return the entries at ``revision`` of keys changed since. Raises ``Compacted``."""
        undone: dict[str, E | None] = {}
        for change in reversed(self.changes_after(revision)):
            undone[change.suffix] = change.old
        return undone

    def select(self, below: str = "", start: str = "", limit: int = 0) -> tuple[list[E], int]:
        """Return entries in key order, at most ``limit`` (0: all), and the number of remaining
        ones."""
        low = max(below, start)
        first = self.keys.bisect_left(low) if low else 0
        last = self.keys.bisect_left(below + "\U0010ffff") if below else len(self.keys)
        stop = min(last, first + limit) if limit else last
        if stop <= first:
            return [], 0
        found = list(map(self.entries.__getitem__, self.keys.islice(first, stop)))
        return found, last - stop

    def count(self, below: str = "") -> int:
        if not below:
            return len(self.keys)
        return self.keys.bisect_left(below + "\U0010ffff") - self.keys.bisect_left(below)
