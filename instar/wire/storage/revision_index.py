"""Revision index of a local store: maps each key to its current and earlier revisions.

Shared by the memory and the SQLite store. The index holds keys and revision numbers; values stay in
the store. Keys are kept per collection, each once, and ``names`` lets the watch cache share the
strings. Earlier revisions stay until compaction, so a range at an older revision costs only what it
returns, and compaction finds the rows to delete without a scan.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from instar.wire.storage.keys import collection_of
from instar.wire.storage.store import Ahead, Compacted

FIRST_REVISION = 1
"""Revision of an empty store, as in etcd; 0 is reserved to mean "absent" and "any"."""


class CollectionKeys:
    """The keys of one collection, each without the prefix that they share."""

    __slots__ = ("_added", "_ghosts", "_order", "heads", "past", "prefix")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.heads: dict[str, int] = {}
        self.past: dict[str, list[int]] = {}  # earlier revisions, ascending; -n: deleted at n
        self._order: list[str] | None = None  # sorted names, built for the first range
        self._added: list[str] = []
        self._ghosts: set[str] = set()  # names of deleted keys that are still in _order

    def enter(self, name: str) -> None:
        """Add a name that is new to the collection."""
        if self._order is None:
            return
        if name in self._ghosts:
            self._ghosts.remove(name)
        else:
            self._added.append(name)

    def leave(self, name: str) -> None:
        """Remove a name that has no revision left."""
        if self._order is not None:
            self._ghosts.add(name)

    def at(self, name: str, revision: int) -> int:
        head = self.heads.get(name, 0)
        if 0 < head <= revision:
            return head
        past = self.past.get(name)
        if past is None:
            return 0
        position = bisect_right(past, revision, key=abs)
        return max(0, past[position - 1]) if position else 0

    def names(self, start: str) -> Iterator[str]:
        """Yield the names in order, from ``start`` on."""
        order = self._sorted()
        for position in range(bisect_left(order, start), len(order)):
            yield order[position]

    def _sorted(self) -> list[str]:
        order = self._order
        if order is None:
            order = self._order = sorted({*self.heads, *self.past} if self.past else self.heads)
        elif self._added or len(self._ghosts) * 2 > len(order):
            if self._ghosts:
                order = [name for name in order if name not in self._ghosts]
                self._added = [name for name in self._added if name not in self._ghosts]
                self._ghosts.clear()
            order += self._added
            self._added.clear()
            order.sort()  # mostly two sorted runs, which timsort merges in about one pass
            self._order = order
        return order


class SupersededRevision(NamedTuple):
    """A superseded write: ``revision`` of a name can be deleted once ``since`` is compacted."""

    since: int
    space: CollectionKeys
    name: str
    revision: int


class RevisionIndex:
    """Keys and revisions of a whole store; see the module docstring."""

    def __init__(self, compacted: int = 0) -> None:
        self.compacted = compacted
        self.revision = max(FIRST_REVISION, compacted)
        self._spaces: dict[str, CollectionKeys] = {}
        self._prefixes: list[str] | None = None  # prefixes of all spaces, sorted
        self._garbage: deque[SupersededRevision] = deque()
        self._weights: deque[int] = deque()  # sizes of the first items of _garbage
        self._weight = 0

    def __len__(self) -> int:
        return sum(len(space.heads) for space in self._spaces.values())

    def head(self, key: str) -> int:
        """Return the current revision of a live key, or 0."""
        prefix = collection_of(key)
        space = self._spaces.get(prefix)
        return 0 if space is None else space.heads.get(key[len(prefix) :], 0)

    def apply(self, key: str, revision: int, deleted: bool) -> None:
        """Record the next write; revisions must be ascending."""
        prefix = collection_of(key)
        space = self._space(prefix)
        name, heads = key[len(prefix) :], space.heads
        before = heads.get(name, 0)
        if before:
            space.past.setdefault(name, []).append(before)
            self._garbage.append(SupersededRevision(revision, space, name, before))
        elif name not in space.past:
            space.enter(name)
        if deleted:
            heads.pop(name, None)
            space.past.setdefault(name, []).append(-revision)
            self._garbage.append(SupersededRevision(revision, space, name, revision))
        else:
            heads[name] = revision
        self.revision = revision

    def load(self, rows: Iterable[tuple[int, str, int]]) -> None:
        """Record many writes (revision, key, is deletion). Optimised for new keys that belong to
        the same collection as the preceding row."""
        space = CollectionKeys("")
        prefix, cut, heads = "\0", 0, space.heads
        for revision, key, deleted in rows:
            if not key.startswith(prefix):
                prefix = collection_of(key)
                space = self._space(prefix)
                cut, heads = len(prefix), space.heads
                if prefix.count("/") < 2:
                    # a key outside the layout is a collection of one; its prefix may begin other
                    # keys
                    prefix = "\0"
            name = key[cut:]
            if deleted or name in heads or name in space.past:
                self.apply(key, revision, bool(deleted))
            else:
                heads[name] = revision
                space.enter(name)
                self.revision = revision

    def counts(self) -> dict[str, int]:
        """Return the number of kept writes per collection."""
        return {
            prefix: len(space.heads) + sum(map(len, space.past.values()))
            for prefix, space in self._spaces.items()
        }

    def rows(self, until: int, prefixes: Iterable[str]) -> list[int]:
        """Return the revisions of the collections' writes up to ``until``, ascending."""
        found: list[int] = []
        for prefix in prefixes:
            space = self._spaces.get(prefix)
            if space is not None:
                found += space.heads.values()
                found += (abs(each) for past in space.past.values() for each in past)
        return sorted(each for each in found if each <= until)

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield (name below the prefix, revision) of live keys. The order is that of their first
        writes as far as the index was built from the log alone."""
        space = self._spaces.get(prefix)
        try:
            yield from () if space is None else space.heads.items()
        except RuntimeError:  # a key was added or removed meanwhile
            return

    def readable(self, revision: int) -> int:
        """Return the revision to read at (0 means the current one). Raises if it cannot be read."""
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
        """Return (key, revision) of a range as of ``revision``, and whether more follow."""
        found: list[tuple[str, int]] = []
        first = max(prefix, start)
        for space in self._reaching(prefix, first):
            shared = space.prefix
            begin = first[len(shared) :] if first.startswith(shared) else ""
            for name in space.names(begin):
                key = shared + name
                if not key.startswith(prefix):
                    break
                if (at := space.at(name, revision)) == 0:
                    continue
                if limit and len(found) == limit:
                    return found, True
                found.append((key, at))
        return found, False

    def past(self, key: str, before: int, limit: int) -> tuple[list[int], bool]:
        """Return a key's last revisions, ascending, deletions negative, and whether more exist."""
        prefix = collection_of(key)
        space = self._spaces.get(prefix)
        name = key[len(prefix) :]
        past = space.past.get(name, ()) if space is not None else ()
        found = [*past, *filter(None, (self.head(key),))]
        if before:
            del found[bisect_left(found, before, key=abs) :]
        cut = max(0, len(found) - limit) if limit else 0
        return found[cut:], cut > 0

    def unweighed(self) -> list[int]:
        """Return superseded revisions of unknown size; pass their sizes to ``weigh`` in this
        order."""
        return [item.revision for item in islice(self._garbage, len(self._weights), None)]

    def weigh(self, sizes: Iterable[int]) -> None:
        for size in sizes:
            self._weights.append(size)
            self._weight += size

    def excess(self, most_bytes: int, most_writes: int) -> int:
        """Return the revision to compact to so that history fits both limits; 0 if it fits
        already."""
        heavy, many, target = self._weight, len(self._garbage), 0
        for item, size in zip(self._garbage, self._weights, strict=False):
            if heavy <= most_bytes and many <= most_writes:
                break
            heavy, many, target = heavy - size, many - 1, item.since
        return target

    def garbage(self, limit: int) -> list[SupersededRevision]:
        """Return the next writes below the compacted revision; call ``forget`` once deleted."""
        ready: list[SupersededRevision] = []
        for item in islice(self._garbage, limit):
            if item.since > self.compacted:
                break
            ready.append(item)
        return ready

    def forget(self, count: int) -> None:
        """Drop the first ``count`` items that ``garbage`` returned."""
        for _ in range(count):
            self._forget(self._garbage.popleft())

    def _forget(self, item: SupersededRevision) -> None:
        if self._weights:
            self._weight -= self._weights.popleft()
        space, name = item.space, item.name
        past = space.past[name]
        past.pop(0)  # items of one key are in the order of its revisions
        if past:
            return
        del space.past[name]
        if name not in space.heads:
            space.leave(name)
            if not space.heads and not space.past:
                del self._spaces[space.prefix]
                self._prefixes = None

    def _space(self, prefix: str) -> CollectionKeys:
        space = self._spaces.get(prefix)
        if space is None:
            space = self._spaces[prefix] = CollectionKeys(prefix)
            self._prefixes = None
        return space

    def _reaching(self, prefix: str, first: str) -> Iterator[CollectionKeys]:
        """Yield the collections that may hold keys with the prefix from ``first`` on, in key order.
        The order of prefixes is that of the keys, as no collection's prefix is a prefix of
        another's."""
        shared = collection_of(prefix)
        if shared.count("/") > 1:
            if shared in self._spaces and first.startswith(shared):
                yield self._spaces[shared]
            return
        if self._prefixes is None:
            self._prefixes = sorted(self._spaces)
        prefixes = self._prefixes
        begin = bisect_left(prefixes, max(prefix, collection_of(first)))
        for position in range(begin, len(prefixes)):
            if not prefixes[position].startswith(prefix):
                return
            yield self._spaces[prefixes[position]]
