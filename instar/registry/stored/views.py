"""Many objects' JSON at one version, put together only when it is written.

A list of ten thousand objects is references to bytes the cache holds anyway; where the version
differs in ``apiVersion`` alone, the other opening is put in while the list is joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload


class Views(Sequence[bytes]):
    """Object ``i`` is ``lead`` and then ``bodies[i]`` without its first ``skip`` bytes."""

    __slots__ = ("_bodies", "_lead", "_size", "_skip")

    def __init__(self, bodies: list[bytes], lead: bytes = b"", skip: int = 0) -> None:
        self._bodies = bodies
        self._lead = lead
        self._skip = skip
        self._size = -1

    def __len__(self) -> int:
        return len(self._bodies)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return list(self._made(self._bodies[index]))
        return self._lead + self._bodies[index][self._skip :]

    def __iter__(self) -> Iterator[bytes]:
        return self._made(self._bodies)

    @property
    def size(self) -> int:
        """Bytes of all objects together."""
        if self._size < 0:
            changed = (len(self._lead) - self._skip) * len(self._bodies)
            self._size = sum(map(len, self._bodies)) + changed
        return self._size

    def pieces(self, size: int) -> Iterator[bytes]:
        """The objects with commas between them, in pieces of about ``size`` bytes."""
        if not self._bodies:
            return
        count = max(1, len(self._bodies) * size // self.size)
        separator, skip = b"," + self._lead, self._skip
        for start in range(0, len(self._bodies), count):
            bodies = self._bodies[start : start + count]
            if skip:
                bodies = [body[skip:] for body in bodies]
            if start:
                bodies.insert(0, b"")  # what stands between two stands before this one, too
            elif self._lead:
                bodies[0] = self._lead + bodies[0]
            yield separator.join(bodies)

    def _made(self, bodies: list[bytes]) -> Iterator[bytes]:
        if not self._skip:
            return iter(bodies)
        lead, skip = self._lead, self._skip
        return (lead + body[skip:] for body in bodies)
