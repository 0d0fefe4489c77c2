"""Memory tuning of long-running server processes: glibc's malloc and Python's garbage collector.

Called by ``instar serve`` and ``instar webhook``.
"""

from __future__ import annotations

import gc

_LARGEST_BLOCK = 4 << 20


def keep_freed_pages() -> None:
    """Make glibc keep freed pages. Each response needs buffers for a moment, and returning their
    pages costs as much as filling them; after a larger block was freed, glibc keeps up to twice its
    size."""
    bytes(_LARGEST_BLOCK)


def freeze_startup_objects() -> None:
    """Exclude startup objects from garbage collection: they stay alive and form no cycles."""
    gc.freeze()
    # a full collection over a quarter of a million objects is noticeable
    gc.set_threshold(50_000, 4, 100)
    gc.enable()
