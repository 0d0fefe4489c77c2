"""The objects of one resource as the watch cache holds them: current entries in key order, and a
window of recent changes.

Knows keys and revisions; what an entry *is* its maker decides. Knows no store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import Generic, NamedTuple, Protocol, TypeVar

from sortedcontainers import SortedList

from instar.records import dataclass
from instar.storage.store import Compacted, Record


class Sized(Protocol):
    """What the cache needs to know of an entry: its revision and about how much memory it holds."""

    @property
    def revision(self) -> int: ...

    @property
    def size(self) -> int: ...


E = TypeVar("E", bound=Sized)
Ingest = Callable[[Record, str], E]
"""(record, its key below the collection, which is kept once for all) → the entry."""


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """How much of the recent past is kept for watchers and consistent pages, per collection."""

    events: int = 100_000
    bytes: int = 64 << 20


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
        """Changes above this revision are all in the window."""
        self.listeners: list[Listener[E]] = []
        self._limits = limits
        self._window_bytes = 0

    def load(self, entries: dict[str, E], revision: int) -> None:
        """Start over from a full read; what was in the window is no longer continuous."""
        self.entries = entries
        self.keys = SortedList(entries)
        self.window.clear()
        self._window_bytes = 0
        self.complete_since = revision

    def apply(self, change: Change[E]) -> None:
        suffix, new = change.suffix, change.new
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

    def forget_until(self, revision: int) -> None:
        """Drop changes at and below ``revision`` (compaction)."""
        while self.window and self.window[0].revision <= revision:
            self._forget_oldest()
        self.complete_since = max(self.complete_since, revision)

    def has_nothing_since(self, revision: int) -> bool:
        """Whether a new one that is complete since ``revision`` would tell the same."""
        return not self.entries and not self.window and self.complete_since <= revision

    def _forget_oldest(self) -> None:
        gone = self.window.popleft()
        self._window_bytes -= gone.old.size if gone.old is not None else 64
        self.complete_since = max(self.complete_since, gone.revision)

    def suffixes(self, below: str = "", start: str = "") -> Iterator[str]:
        """Key suffixes in order, those with the prefix ``below``, from ``start`` on."""
        if not below and not start:
            return iter(self.keys)
        low = max(below, start)
        high = below + "\U0010ffff" if below else None
        return iter(self.keys.irange(low, high))

    def changes_after(self, revision: int) -> list[Change[E]]:
        """Raises ``Compacted`` when the window does not reach back that far."""
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
        """Entries in key order as they were at ``revision``: now, with later changes undone.

        Read it without awaiting in between. Raises ``Compacted`` before yielding anything.
        """
        undone: dict[str, E | None] = {}
        for change in reversed(self.changes_after(revision)):
            undone[change.suffix] = change.old
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

    def select(self, below: str = "", start: str = "", limit: int = 0) -> tuple[list[E], int]:
        """Entries in key order, at most ``limit`` (0: all), and how many more there are."""
        low = max(below, start)
        first = self.keys.bisect_left(low) if low else 0
        last = self.keys.bisect_left(below + "\U0010ffff") if below else len(self.keys)
        stop = min(last, first + limit) if limit else last
        if stop <= first:
            return [], 0
        found = list(map(self.entries.__getitem__, self.keys.islice(first, stop)))
        return found, last - stop
