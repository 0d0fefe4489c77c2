"""Write batching: joins small pieces of a response into larger writes.

``http1.py`` calls it for responses of several chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def join_pieces(opening: bytes, pieces: Iterable[bytes], enough: int) -> Iterator[bytes]:
    """Join pieces to at least ``enough`` bytes, but for the last: a write costs more than copying
    a few bytes. Joined here, as ``writelines`` of some releases of Python 3.12 and 3.13 never
    reports that the transport is full."""
    part, size = [opening], len(opening)
    for piece in pieces:
        part.append(piece)
        size += len(piece)
        if size >= enough:
            yield b"".join(part)
            part, size = [], 0
    if part:
        yield b"".join(part)
