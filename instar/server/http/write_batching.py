"""Which pieces of an answer go out in one write. Knows nothing of connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def together(opening: bytes, pieces: Iterable[bytes], enough: int) -> Iterator[bytes]:
    """What is small goes out with what is large: a write costs more than a few bytes. Parts of at
    least ``enough`` bytes but for the last. Joined here: where a transport is given several at once
    (``writelines``), some releases of Python 3.12 and 3.13 never tell that it is full."""
    part, size = [opening], len(opening)
    for piece in pieces:
        part.append(piece)
        size += len(piece)
        if size >= enough:
            yield b"".join(part)
            part, size = [], 0
    if part:
        yield b"".join(part)
