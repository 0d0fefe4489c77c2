"""Memory that is free in this process, and only looks taken, is given back to the system.

What large requests leave behind lies scattered among what stays, and the C library keeps it for the
next: a server would seem as large for ever as in its busiest moment. glibc gives back whole pages
when it is asked to, in a few milliseconds; other C libraries are not asked. Knows no requests.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

EVERY_SECONDS = 60.0


def trimmer() -> Callable[[], object] | None:
    """What gives memory back; None where nobody can."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return lambda: trim(0)


async def trim_heap_periodically(every: float = EVERY_SECONDS) -> None:
    """Now and then, in a thread, until cancelled."""
    trim = trimmer()
    while trim is not None:
        await asyncio.sleep(every)
        await asyncio.to_thread(trim)
