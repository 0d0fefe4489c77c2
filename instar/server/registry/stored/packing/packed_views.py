"""List body of packed entries: unpacks them piece by piece while the list is sent.

``stored/uniform_views.py`` makes one for a list with packed entries that are normal for one
version. The entries hold their bytes, so that later writes do not change the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from instar.server.registry.stored.packing.packed_entry import PackedEntry, unpacked_all
from instar.server.registry.stored.views import STREAMED_BYTES, Views

_ENTRIES_PER_READ = 100


class PackedViews(Views):
    """The views of a list: object ``i`` is ``lead`` followed by the bytes of ``items[i]`` without
    their first ``skip``."""

    __slots__ = ("_items",)

    def __init__(
        self, items: Sequence[bytes | PackedEntry], lead: bytes, skip: int, size: int
    ) -> None:
        """``size`` is the sum of the views' lengths."""
        super().__init__([], lead, skip, size, lasting=True)
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return list(self._made(unpacked_all(self._items[index])))
        return self._lead + unpacked_all([self._items[index]])[0][self._skip :]

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self._items), _ENTRIES_PER_READ):
            yield from self._made(unpacked_all(self._items[start : start + _ENTRIES_PER_READ]))

    @property
    def held(self) -> int:
        return min(self.size, STREAMED_BYTES)

    def _bodies_of(self, start: int, stop: int) -> list[bytes]:
        return unpacked_all(self._items[start:stop])
