"""Text file of JSON blocks with an index, so that one block can be read alone.

Used by ``types.py`` and ``messages.py``. ``scripts/make-facts`` writes the files of ``data/``, a
line for each type, so that a diff shows what a release of Kubernetes changes.
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
        """Offset, length and note of each block, by name."""
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
        """Return the note of a block in the index; None if there is no such block."""
        found = self._index.get(block)
        return None if found is None else found[2]

    def block(self, name: str) -> dict[str, Any]:
        """Return a block; empty if there is no such block."""
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


def split_reference(reference: str, home: str) -> tuple[str, str]:
    """Return (block, name) for ``block#Name`` or a bare name of the block ``home``."""
    block, _, name = reference.rpartition("#")
    return block or home, name
