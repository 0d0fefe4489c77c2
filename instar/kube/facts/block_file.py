"""A file of compressed JSON blocks with an index: one block is read without the others."""

from __future__ import annotations

import zlib
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

DATA = Path(__file__).parent / "data"
_HEAD = 4


class BlockFile:
    """Blocks by group version (``apps/v1``, ``v1``); each is parsed once and kept."""

    def __init__(self, name: str) -> None:
        self._path = DATA / name
        self._blocks: dict[str, dict[str, Any]] = {}

    @cached_property
    def _index(self) -> tuple[int, dict[str, list[Any]]]:
        with self._path.open("rb") as file:
            size = int.from_bytes(file.read(_HEAD), "big")
            return _HEAD + size, orjson.loads(zlib.decompress(file.read(size)))

    def names(self) -> list[str]:
        return list(self._index[1])

    def note(self, block: str) -> Any:
        """What the index says about a block; None for one that is not here."""
        found = self._index[1].get(block)
        return None if found is None else found[2]

    def block(self, name: str) -> dict[str, Any]:
        """Empty for a block that is not here."""
        found = self._blocks.get(name)
        if found is None:
            found = self._blocks[name] = self._read(name)
        return found

    def _read(self, name: str) -> dict[str, Any]:
        start, index = self._index
        if name not in index:
            return {}
        offset, size, _ = index[name]
        with self._path.open("rb") as file:
            file.seek(start + offset)
            block: dict[str, Any] = orjson.loads(zlib.decompress(file.read(size)))
        return block


def located(reference: str, home: str) -> tuple[str, str]:
    """``block#Name`` or a bare name of the block ``home`` → (block, name)."""
    block, _, name = reference.rpartition("#")
    return block or home, name
