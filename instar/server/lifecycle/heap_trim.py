"""Heap trimmer: returns free memory to the operating system after the start, then once a minute.

``lifetime.py`` starts it as a background task. After large requests the C library keeps freed
memory in scattered pages, so a process would stay as large as in its busiest moment. glibc returns
such pages on request, in a few milliseconds; with other C libraries the trimmer does nothing.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

from instar.base.supervision import rest

EVERY_SECONDS = 60.0
FIRST_SECONDS = 20.0
"""Until the first time: the objects that a start has read are packed by then."""


def trimmer() -> Callable[[], object] | None:
    """A function that trims the heap; None where the C library has none."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return lambda: trim(0)


async def trim_heap_periodically(
    every: float = EVERY_SECONDS, first: float = FIRST_SECONDS
) -> None:
    """Trim in a thread every so many seconds, until cancelled."""
    trim, pause = trimmer(), first
    while trim is not None:
        await rest(pause)
        await asyncio.to_thread(trim)
        pause = every
