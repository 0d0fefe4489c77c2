"""What a running expression carries: the meter first, then its variables.

A frame is a plain list because reading ``frame[3]`` is the cheapest thing Python can do, and every
step of every rule does it. Costs that do not depend on data are summed while compiling and charged
once per branch, so straight-line code pays nothing per node; where an error leaves the rest of a
branch undone, its part is given back.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Any, TypeAlias

from instar.kube.cel.values import CostExceeded

Frame: TypeAlias = list[Any]
Step: TypeAlias = Callable[[Frame], Any]

SPENT, NEXT_CHECK, LIMIT, DEADLINE, FIRST_VARIABLE = 0, 1, 2, 3, 4
CHECK_EVERY = 20_000
"""Cost units between two looks at the clock: some milliseconds."""


def checkpoint(frame: Frame) -> None:
    """Called when ``SPENT`` passed ``NEXT_CHECK``; stops what costs or takes too much."""
    if frame[SPENT] > frame[LIMIT] or thread_time() > frame[DEADLINE]:
        raise CostExceeded
    frame[NEXT_CHECK] = min(frame[LIMIT], frame[SPENT] + CHECK_EVERY)
