"""Packing of one collection: its dictionary, how well it packs, and when a new one is due.

``packer.py`` has one for each collection that it has looked at, and decides when to pack. Training
and packing are plain functions that run in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import intern

from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry, UnreadableEntry
from instar.server.registry.stored.object_bytes import opening_of
from instar.server.registry.stored.packing.packed_entry import (
    HotValues,
    PackedEntry,
    PackedKind,
    PackedValue,
)
from instar.wire.storage.store import Seal
from instar.wire.storage.value_dictionary import (
    SAMPLE_BYTES,
    Untrainable,
    ValueDictionary,
    train,
)

LEAST_OBJECTS = 256
LEAST_BYTES = 1 << 20
"""A smaller collection is not packed."""
WHILE_LOADING_BYTES = 256 << 20
"""A collection of so many bytes is packed while it is loaded, because it would take too much memory
as it is. Smaller ones are packed after the start, which is faster without."""
LEAST_RATIO = 1.5
"""A collection is packed only if that makes it so much smaller."""
MOST_SAMPLES = 800
_WORSE = 0.75
"""A new dictionary is due when later values pack to this part of the first ones' ratio."""
_BETTER = 1.1
"""A new dictionary replaces the old one if it packs so much better."""
RETRAIN_BYTES = 4 << 20
"""Bytes of the latest values whose ratio is compared with that of the training."""
_MOST_KINDS = 64
_MOST_SIZES = 16384

Packable = InMemoryEntry | PackedEntry


class CollectionPacking:
    """Knows how the values of one collection are packed."""

    def __init__(self, hot: HotValues) -> None:
        self._hot = hot
        self.dictionary: ValueDictionary | None = None
        self.state: object = None
        """``Collection.state`` when everything was packed."""
        self.entries: object = None
        """The ``Collection.entries`` of the last round; others mean that all was loaded anew."""
        self.packed_to = 0
        """Changes up to this revision are packed."""
        self.samples: list[bytes] = []
        """Of a collection that is being loaded."""
        self._loaded_bytes = 0
        self._refused = 0
        """Number of objects when a dictionary was found not to pay."""
        self._ratio = self._recent_ratio = 0.0
        self._before = self._after = 0
        self._kinds: dict[tuple[bytes, Seal | None], PackedKind] = {}
        self._sizes: dict[int, int] = {}

    # --- when ---------------------------------------------------------------------------------

    def has_enough(self, count: int) -> bool:
        """Return whether so many objects may be worth a dictionary."""
        return count >= LEAST_OBJECTS and count >= 2 * self._refused

    def has_shrunk(self, count: int) -> bool:
        """Return whether so few objects are left that they do not need the dictionary."""
        return self.dictionary is not None and count < LEAST_OBJECTS // 2

    def is_large(self, size: int) -> bool:
        """Return whether so many bytes are worth a dictionary."""
        return size >= LEAST_BYTES

    def has_samples(self, expected: int) -> bool:
        """Return whether enough is known to train for a collection that is being loaded, and will
        have so many objects."""
        taken = len(self.samples)
        if taken < LEAST_OBJECTS:
            return False
        size = self._loaded_bytes * max(1.0, expected / taken)
        return self._loaded_bytes >= LEAST_BYTES and size >= WHILE_LOADING_BYTES

    @property
    def is_outdated(self) -> bool:
        """Whether the latest values pack so much worse that another training is due."""
        return 0 < self._recent_ratio < self._ratio * _WORSE

    def end_round(self) -> None:
        """Note how the latest values packed, once they are enough to tell."""
        if self._before >= RETRAIN_BYTES:
            self._recent_ratio = self._before / max(1, self._after)
            self._before = self._after = 0

    def collects(self, held: InMemoryEntry, expected: int) -> bool:
        """Take a sample of a collection that is being loaded, and will have so many objects. Return
        whether that was the last one that is needed to pack it meanwhile."""
        if held.raw is not None or self._refused or len(self.samples) >= MOST_SAMPLES:
            return False
        if self.has_samples(expected):
            return False
        self._loaded_bytes += len(held.ready)
        self.samples.append(held.ready)
        return self.has_samples(expected)

    def settle(self, made: TrainedDictionary | None, count: int) -> bool:
        """Take over a dictionary, or note that there is none worth using. Return whether it is
        new."""
        self.samples = []
        self._before = self._after = 0
        self._recent_ratio = 0.0
        if made is None or made.ratio < LEAST_RATIO:
            if self.dictionary is None:
                self._refused = count
            return False
        if self.dictionary is not None and made.ratio < made.ratio_before * _BETTER:
            self._ratio = made.ratio_before  # these values do not pack better: expect no more
            return False
        self.dictionary, self._ratio, self._refused = made.dictionary, made.ratio, 0
        self._kinds = {}
        return True

    # --- how ----------------------------------------------------------------------------------

    def packed_entry(self, entry: Packable, made: PackedValue) -> PackedEntry | None:
        """Return the entry with its packed view; None where it stays as it is."""
        held = entry.fresh() if isinstance(entry, PackedEntry) else entry
        kind = self._kind(held, made)
        if kind is None:
            return None
        self._before += made.size
        self._after += len(made.frame)
        size = self._sizes.get(made.size)
        if size is None:
            size = made.size
            if len(self._sizes) < _MOST_SIZES:
                self._sizes[size] = size
        return PackedEntry(kind, PackedValue(made.frame, size), held)

    def packed_now(self, held: InMemoryEntry) -> CacheEntry:
        """Return the packed entry of a loaded record; the given one where it stays as it is."""
        if held.raw is not None or self.dictionary is None:
            return held
        made = packed_value(self.dictionary, held)
        return (None if made is None else self.packed_entry(held, made)) or held

    def _kind(self, held: InMemoryEntry, made: PackedValue) -> PackedKind | None:
        opening = opening_of(held.ready)
        if opening is None or self.dictionary is None:
            return None
        kind = self._kinds.get((opening, held.seal))
        if kind is None:
            if len(self._kinds) >= _MOST_KINDS:
                return None
            version = intern(opening.decode(errors="replace"))
            kind = PackedKind(self.dictionary, version, held.seal, self._hot)
            self._kinds[opening, held.seal] = kind
        return kind


class TrainedDictionary:
    """A dictionary with the ratio by which it packs values that it was not trained on, and that of
    the dictionary before it."""

    def __init__(self, dictionary: ValueDictionary, ratio: float, ratio_before: float) -> None:
        self.dictionary, self.ratio, self.ratio_before = dictionary, ratio, ratio_before


def trained(samples: Sequence[bytes], before: ValueDictionary | None) -> TrainedDictionary | None:
    """Train on half of the samples and measure with the others; None where that is not possible."""
    chosen, size = [], 0
    for sample in samples[:MOST_SAMPLES]:
        if size + len(sample) <= SAMPLE_BYTES:
            chosen.append(sample)
            size += len(sample)
    try:
        found = train(chosen[::2])
    except Untrainable:
        return None
    others = chosen[1::2]
    ratios = [_ratio(each, others) for each in found]
    best = max(range(len(found)), key=ratios.__getitem__)
    found[best].trim()
    ratio_before = 0.0 if before is None else _ratio(before, others)
    return TrainedDictionary(found[best], ratios[best], ratio_before)


def _ratio(dictionary: ValueDictionary, values: Sequence[bytes]) -> float:
    after = sum(len(dictionary.pack(value)) for value in values)
    return sum(map(len, values)) / max(1, after)


def packed_value(dictionary: ValueDictionary, entry: Packable) -> PackedValue | None:
    """Return the entry's view, packed; None where it stays as it is."""
    try:
        view = entry.fresh().ready if isinstance(entry, PackedEntry) else entry.view
    except UnreadableEntry:
        return None
    frame = dictionary.pack(view)
    return PackedValue(frame, len(view)) if len(frame) * LEAST_RATIO < len(view) else None


def packed_values(
    dictionary: ValueDictionary, entries: Iterable[Packable]
) -> list[PackedValue | None]:
    """Return the packed view of each entry; None for those that stay as they are."""
    return [packed_value(dictionary, entry) for entry in entries]
