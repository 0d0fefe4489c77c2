"""Requests per version in the last day, from counters that only grow.

Used by ``usage.py``. The module notes the totals every hour and subtracts those of a day ago.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

DAY, HOUR = 86_400.0, 3_600.0
_MOST_MARKS = 26
"""Hourly totals that are kept; a new one replaces the oldest."""


class VersionKey(NamedTuple):
    group: str
    resource: str
    version: str


Totals = Mapping[VersionKey, int]


class DailyRequests:
    """Requests per version in the last day."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, Totals]] = deque(maxlen=_MOST_MARKS)

    def is_due(self, now: float) -> bool:
        return not self._marks or now - self._marks[-1][0] >= HOUR

    def mark(self, now: float, totals: Totals) -> None:
        self._marks.append((now, dict(totals)))

    def since(self, now: float) -> float:
        """Return the moment from which requests are counted: a day ago, or the first note."""
        return self._mark(now)[0]

    def counts(self, now: float, totals: Totals) -> dict[VersionKey, int]:
        before = self._mark(now)[1]
        return {key: max(count - before.get(key, 0), 0) for key, count in totals.items()}

    def _mark(self, now: float) -> tuple[float, Totals]:
        """Return the newest note that is a day old, else the oldest."""
        found: tuple[float, Totals] = self._marks[0] if self._marks else (now, {})
        for mark in self._marks:
            if mark[0] <= now - DAY:
                found = mark
        return found
