"""``RetryAfter``: the seconds after which a client whose request was rejected should try again.

``flow_control.py`` keeps one per priority level. The number doubles while many requests are
rejected, up to 32, and shrinks by one per second when few are.
"""

from __future__ import annotations

from collections import deque

_MOST = 32
_MANY = 3
"""Rejections per second of the present number above which it doubles."""


class RetryAfter:
    """Rejections of one level in the last seconds. Times are whole seconds, passed in."""

    def __init__(self) -> None:
        self.seconds = 1
        self._second = 0
        self._count = 0
        self._history: deque[tuple[int, int]] = deque()
        self._doubled = 0

    def note(self, second: int) -> None:
        """Count a rejection."""
        if second == self._second:
            self._count += 1
            return
        self._history.append((self._second, self._count))
        while second - self._history[0][0] > min(2 * self.seconds, _MOST):
            self._history.popleft()
            if not self._history:
                break
        self._second, self._count = second, 1
        self._adjust(second)

    def _adjust(self, second: int) -> None:
        recent = sum(n for at, n in self._history if second - at <= self.seconds)
        if second - self._doubled >= self.seconds and recent >= _MANY * self.seconds:
            self.seconds = min(2 * self.seconds, _MOST)
            self._doubled = second
        elif recent < self.seconds and self.seconds > 1:
            self.seconds -= 1
