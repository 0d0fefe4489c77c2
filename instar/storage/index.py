"""Which revisions a key has: the part of a local store that is the same on disk and in memory.

It holds keys and revision numbers, never values, and knows nothing of files or subscribers.
A key's earlier revisions stay until they are compacted, so a range at an older revision costs
what it returns, and compaction knows its victims without a scan.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from instar.storage.store import Ahead, Compacted

FIRST_REVISION = 1
"""What an empty store is at, as in etcd: 0 must stay free to mean "absent" and "any"."""


class Garbage(NamedTuple):
    """The write at ``revision`` of ``key`` can go once ``since`` is compacted."""

    since: int
    key: str
    revision: int


class Index:
    def __init__(self, compacted: int = 0) -> None:
        self.compacted = compacted
        self.revision = max(FIRST_REVISION, compacted)
        self._heads: dict[str, int] = {}
        self._past: dict[str, list[int]] = {}  # earlier revisions, ascending; -n: deleted at n
        self._garbage: deque[Garbage] = deque()
        self._weights: deque[int] = deque()  # of the first items of _garbage
        self._weight = 0
        self._order: list[str] = []
        self._added: list[str] = []
        self._ghosts: set[str] = set()  # keys in _order that are gone for good

    def __len__(self) -> int:
        return len(self._heads)

    def head(self, key: str) -> int:
        """The revision of the live key, or 0."""
        return self._heads.get(key, 0)

    def apply(self, key: str, revision: int, deleted: bool) -> None:
        """Record the next write; revisions must come in order."""
        before = self._heads.get(key, 0)
        if before:
            self._past.setdefault(key, []).append(before)
            self._garbage.append(Garbage(revision, key, before))
        elif key not in self._past:
            self._enter(key)
        if deleted:
            self._heads.pop(key, None)
            self._past.setdefault(key, []).append(-revision)
            self._garbage.append(Garbage(revision, key, revision))
        else:
            self._heads[key] = revision
        self.revision = revision

    def readable(self, revision: int) -> int:
        """The revision a read means (0: the current one), if it can be read."""
        if revision == 0:
            return self.revision
        if revision > self.revision:
            raise Ahead(revision, self.revision)
        self.check_history(revision)
        return revision

    def check_history(self, after: int) -> None:
        if after < self.compacted:
            raise Compacted(self.compacted)

    def select(
        self, prefix: str, start: str, limit: int, revision: int
    ) -> tuple[list[tuple[str, int]], bool]:
        """Keys of a range with their revisions as of ``revision``; and whether more follow."""
        found: list[tuple[str, int]] = []
        for key in self._keys(prefix, start):
            if (at := self._at(key, revision)) == 0:
                continue
            if limit and len(found) == limit:
                return found, True
            found.append((key, at))
        return found, False

    def past(self, key: str, before: int, limit: int) -> tuple[list[int], bool]:
        """The last revisions of a key in order, deletions negative; and whether there are more."""
        found = [*self._past.get(key, ()), *filter(None, (self.head(key),))]
        if before:
            del found[bisect_left(found, before, key=abs) :]
        cut = max(0, len(found) - limit) if limit else 0
        return found[cut:], cut > 0

    def unweighed(self) -> list[int]:
        """Revisions of history whose size is not known yet; ``weigh`` them in this order."""
        return [item.revision for item in islice(self._garbage, len(self._weights), None)]

    def weigh(self, sizes: Iterable[int]) -> None:
        for size in sizes:
            self._weights.append(size)
            self._weight += size

    def excess(self, most_bytes: int, most_writes: int) -> int:
        """The revision to compact to so that history weighs no more; 0 where it does not."""
        heavy, many, target = self._weight, len(self._garbage), 0
        for item, size in zip(self._garbage, self._weights, strict=False):
            if heavy <= most_bytes and many <= most_writes:
                break
            heavy, many, target = heavy - size, many - 1, item.since
        return target

    def garbage(self, limit: int) -> list[Garbage]:
        """The next writes nobody can read any more; ``forget`` them when they are deleted."""
        ready: list[Garbage] = []
        for item in islice(self._garbage, limit):
            if item.since > self.compacted:
                break
            ready.append(item)
        return ready

    def forget(self, count: int) -> None:
        """Drop the first ``count`` items that ``garbage`` gave."""
        for _ in range(count):
            self._forget(self._garbage.popleft())

    def _forget(self, item: Garbage) -> None:
        if self._weights:
            self._weight -= self._weights.popleft()
        past = self._past[item.key]
        past.pop(0)  # items of a key come in the order of its revisions
        if past:
            return
        del self._past[item.key]
        if item.key not in self._heads:
            self._ghosts.add(item.key)

    def _enter(self, key: str) -> None:
        if key in self._ghosts:
            self._ghosts.remove(key)
        else:
            self._added.append(key)

    def _at(self, key: str, revision: int) -> int:
        head = self._heads.get(key, 0)
        if 0 < head <= revision:
            return head
        past = self._past.get(key)
        if past is None:
            return 0
        position = bisect_right(past, revision, key=abs)
        return max(0, past[position - 1]) if position else 0

    def _keys(self, prefix: str, start: str) -> Iterator[str]:
        if self._added or len(self._ghosts) * 2 > len(self._order):
            self._sort()
        order = self._order
        for position in range(bisect_left(order, max(prefix, start)), len(order)):
            key = order[position]
            if not key.startswith(prefix):
                return
            yield key

    def _sort(self) -> None:
        if self._ghosts:
            self._order = [key for key in self._order if key not in self._ghosts]
            self._added = [key for key in self._added if key not in self._ghosts]
            self._ghosts.clear()
        self._order += self._added
        self._added.clear()
        self._order.sort()  # two sorted runs mostly: near to one pass
