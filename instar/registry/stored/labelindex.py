"""Which objects carry a label, answered without looking at objects that do not.

Built for a collection when the first selector arrives and kept current from then on. It holds
labels as stored: a resource whose webhook may change labels does not use it.
"""

from __future__ import annotations

from instar.api.selectors import LabelSelector
from instar.registry.stored.backend import Objects
from instar.registry.stored.entry import Entry
from instar.storage.collection import Change


class LabelIndex:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._carriers: dict[tuple[str, str], set[str]] = {}
        for entry in objects.entries.values():
            self._add(entry)
        objects.listeners.insert(0, self._changed)

    def close(self) -> None:
        self._objects.listeners.remove(self._changed)

    def matching(self, selector: LabelSelector) -> list[str] | None:
        """Suffixes that may match, in key order; None when only a full walk can tell."""
        equalities = selector.equalities()
        if not equalities:
            return None
        carriers = [self._carriers.get(pair) for pair in equalities]
        if not all(carriers):
            return []
        smallest = min((found for found in carriers if found), key=len)
        return sorted(smallest)

    def _changed(self, change: Change[Entry]) -> None:
        if change.old is not None:
            self._remove(change.old)
        if change.new is not None:
            self._add(change.new)

    def _add(self, entry: Entry) -> None:
        for pair in entry.labels.items():
            self._carriers.setdefault(pair, set()).add(entry.suffix)

    def _remove(self, entry: Entry) -> None:
        for pair in entry.labels.items():
            carriers = self._carriers.get(pair)
            if carriers is not None:
                carriers.discard(entry.suffix)
                if not carriers:
                    del self._carriers[pair]
