"""A text file of JSON blocks with an index: one block is read without the others.

``scripts/make-facts`` writes the files of ``data/``, a line for each type, so that a diff shows
what a release of Kubernetes changes. ``types.py`` and ``messages.py`` read them by it.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

DATA = Path(__file__).parent / "data"


class BlockFile:
    """Blocks by group version (``apps/v1``, ``v1``); each is parsed once and kept."""

    def __init__(self, name: str) -> None:
        self._path = DATA / name
        self._blocks: dict[str, dict[str, Any]] = {}

    @cached_property
    def _index(self) -> dict[str, tuple[int, int, Any]]:
        """Block → where it begins, its length, what is noted about it."""
        with self._path.open("rb") as file:
            head = file.readline()
            size = int(head)
            listed: dict[str, tuple[int, Any]] = orjson.loads(file.read(size))
        index, at = {}, len(head) + size
        for name, (length, note) in listed.items():
            index[name] = at, length, note
            at += length
        return index

    def names(self) -> list[str]:
        return list(self._index)

    def note(self, block: str) -> Any:
        """What the index says about a block; None for one that is not here."""
        found = self._index.get(block)
        return None if found is None else found[2]

    def block(self, name: str) -> dict[str, Any]:
        """Empty for a block that is not here."""
        found = self._blocks.get(name)
        if found is None:
            found = self._blocks[name] = self._read(name)
        return found

    def _read(self, name: str) -> dict[str, Any]:
        if name not in self._index:
            return {}
        offset, size, _ = self._index[name]
        with self._path.open("rb") as file:
            file.seek(offset)
            block: dict[str, Any] = orjson.loads(file.read(size))
        return block


def located(reference: str, home: str) -> tuple[str, str]:
    """``block#Name`` or a bare name of the block ``home`` → (block, name)."""
    block, _, name = reference.rpartition("#")
    return block or home, name
