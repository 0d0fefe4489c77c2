"""Which pieces of an answer go out in one write. Knows nothing of connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def together(
    opening: bytes, pieces: Iterable[bytes], enough: int
) -> Iterator[tuple[list[bytes], int]]:
    """What is small goes out with what is large: a write costs more than a few bytes. Parts of at
    least ``enough`` bytes but for the last, and how many bytes they are."""
    part, size = [opening], len(opening)
    for piece in pieces:
        part.append(piece)
        size += len(piece)
        if size >= enough:
            yield part, size
            part, size = [], 0
    if part:
        yield part, size
