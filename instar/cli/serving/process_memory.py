"""How a process that serves for long treats its memory. Knows nothing of what it serves."""

from __future__ import annotations

import gc

_LARGEST_BLOCK = 4 << 20


def keep_pages() -> None:
    """Each answer needs some buffers for a moment. glibc would give their pages back to the
    system and fetch them anew for the next answer, which costs as much as filling them; once it
    has seen a larger block come and go, it keeps up to twice that."""
    bytes(_LARGEST_BLOCK)


def freeze_startup_objects() -> None:
    """What is there when serving begins lives as long and forms no cycles: looking through it
    over and over is most of what the collector would do here."""
    gc.freeze()
    gc.set_threshold(50_000, 4, 100)  # a round over a quarter of a million is felt, over more seen
    gc.enable()
