"""For what happens in another thread or process, in its own time, and is told to nobody."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T | None], within: float = 30.0) -> T:
    """The first answer that is true, asked for again and again."""
    deadline = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {within:g} s"
        time.sleep(0.01)
    return found
