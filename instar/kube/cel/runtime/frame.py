"""Evaluation frame: the cost meter and the variables of a running expression.

Every closure of this package gets the frame as its argument. A frame is a plain list, because
indexing one is the cheapest operation in Python and every step does it. Static costs are summed at
compile time and charged once per branch; if an error skips the rest of a branch, its cost is
refunded.
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
"""Cost units between two checks of the clock: some milliseconds."""


def checkpoint(frame: Frame) -> None:
    """Check limit and deadline; called when ``SPENT`` passes ``NEXT_CHECK``. Raises
    CostExceeded."""
    if frame[SPENT] > frame[LIMIT] or thread_time() > frame[DEADLINE]:
        raise CostExceeded
    frame[NEXT_CHECK] = min(frame[LIMIT], frame[SPENT] + CHECK_EVERY)
