"""Collectors of list views, one per representation of the cached entries.

``Codec.uniform_views`` picks a collector with ``collector_for`` and adds entries in parts that fit
a turn of the event loop. One version's schema leaves all entries of such a list unchanged, so a
collector only gathers bytes, sizes or arena locations; ``codec.py`` handles entries that must be
converted or pruned.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Protocol

from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.lazy_entry import LazyEntry, load_entries
from instar.server.registry.stored.packing.packed_entry import PackedEntry, has_packed
from instar.server.registry.stored.packing.packed_views import PackedViews
from instar.server.registry.stored.shared_entry import SharedViews, views_of
from instar.server.registry.stored.views import LazyViews, Read, Views

_LONGEST_IN_MEMORY = 1000
"""A list of at most so many lazy entries reads all bytes at once; a longer one while it is sent."""


def is_read_at_once(entries: Sequence[CacheEntry]) -> bool:
    """Return whether a list of lazy entries reads their bytes before it is sent."""
    return len(entries) <= _LONGEST_IN_MEMORY


def has_compact(entries: Sequence[CacheEntry]) -> bool:
    """Return whether a list reads bytes from disk, or unpacks them."""
    return bool(entries) and (isinstance(entries[0], LazyEntry) or has_packed(entries))


class ViewCollector(Protocol):
    """Gathers the views of one list."""

    def add(self, part: Sequence[CacheEntry]) -> bool:
        """Add the next entries. Return False where their bytes are not as expected."""
        ...

    def views(self) -> Views: ...


def collector_for(
    entries: Sequence[CacheEntry], stored: VersionServing, wanted: VersionServing, read: Read
) -> ViewCollector:
    """Return the collector for the representation of ``entries``, which are normal for ``stored``.
    ``read`` makes the views of entries at ``wanted``."""
    is_spliced = stored is not wanted
    if isinstance(entries[0], LazyEntry):
        if is_read_at_once(entries):
            return _DiskCollector(stored, wanted)
        return _DeferredCollector(entries, stored, wanted, read)
    shared = None if is_spliced else SharedViews.of(entries)
    if shared is not None:
        return _SharedCollector(shared)
    return _MemoryCollector(stored, wanted)


class _MemoryCollector:
    """Entries that hold their bytes: refers to these, with another ``apiVersion`` if needed. Of
    packed entries it notes the lengths, for the list unpacks them while it is sent."""

    lasting = True

    def __init__(self, stored: VersionServing, wanted: VersionServing) -> None:
        self._stored = stored
        self._opening = b"" if stored is wanted else stored.opening
        self._lead = b"" if stored is wanted else wanted.opening
        self._bodies: list[bytes] = []
        self._mixed: list[bytes | PackedEntry] | None = None
        self._size = 0

    def add(self, part: Sequence[CacheEntry]) -> bool:
        if self._mixed is not None or has_packed(part):
            return self._add_mixed(part)
        found = views_of(part)
        if not self._opens_all(found):
            return False
        self._bodies += found
        self._size += sum(map(len, found)) + (len(self._lead) - len(self._opening)) * len(found)
        return True

    def _add_mixed(self, part: Sequence[CacheEntry]) -> bool:
        if self._mixed is None:
            self._mixed = list(self._bodies)
        longer = len(self._lead) - len(self._opening)
        for entry in part:
            if isinstance(entry, PackedEntry):
                if self._opening and entry.api_version != self._stored.api_version:
                    return False
                self._mixed.append(entry)
                self._size += entry.shown_size + longer
                continue
            found = views_of((entry,))
            if not self._opens_all(found):
                return False
            self._mixed += found
            self._size += len(found[0]) + longer
        return True

    def _opens_all(self, found: Sequence[bytes]) -> bool:
        opening = self._opening
        return not opening or all(map(methodcaller("startswith", opening), found))

    def views(self) -> Views:
        skip = len(self._opening)
        if self._mixed is not None:
            return PackedViews(self._mixed, self._lead, skip, self._size)
        return Views(self._bodies, self._lead, skip, self._size, lasting=self.lasting)


class _DiskCollector(_MemoryCollector):
    """Few entries with bytes on disk: reads them together."""

    lasting = False

    def add(self, part: Sequence[CacheEntry]) -> bool:
        return super().add(load_entries(part))


class _DeferredCollector:
    """Many entries with bytes on disk: adds up their sizes, for the list reads the bytes
    while it is sent."""

    def __init__(
        self,
        entries: Sequence[CacheEntry],
        stored: VersionServing,
        wanted: VersionServing,
        read: Read,
    ) -> None:
        self._entries = entries
        self._read = read
        longer = 0 if stored is wanted else len(wanted.opening) - len(stored.opening)
        self._size = longer * len(entries)

    def add(self, part: Sequence[CacheEntry]) -> bool:
        self._size += sum(entry.view_size for entry in part)
        return True

    def views(self) -> Views:
        return LazyViews(self._entries, self._read, self._size)


class _SharedCollector:
    """Entries in the shared-memory arena: notes where their bytes are."""

    def __init__(self, shared: SharedViews) -> None:
        self._shared = shared

    def add(self, part: Sequence[CacheEntry]) -> bool:
        self._shared.add(part)
        return True

    def views(self) -> Views:
        return self._shared
