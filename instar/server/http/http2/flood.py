"""Flood meter: counts frames that cost the server work and bring no request further.

Each connection has one. Such frames (resets, pings, settings, window updates, empty data) are part
of normal use, so a client has a reserve of them that fills up with time and with what it receives.
"""

from __future__ import annotations

from instar.base import limits
from instar.base.http2 import frames
from instar.base.http2.frames import ProtocolError

_BYTES_PER_FRAME = 1024
"""Received bytes that justify one window update."""
_FRAMES_PER_ANSWER = 2


class FloodMeter:
    """The reserve of one connection."""

    __slots__ = ("_left", "_since")

    def __init__(self, now: float) -> None:
        self._left: float = limits.CONTROL_FRAMES
        self._since = now

    def refill(self, now: float) -> None:
        """Called for each piece of received data."""
        more = (now - self._since) * limits.CONTROL_FRAMES_PER_SECOND
        self._since = now
        self._left = min(self._left + more, limits.CONTROL_FRAMES)

    def spend(self, cost: float = 1) -> None:
        """Raises ``ProtocolError`` when nothing is left."""
        self._left -= cost
        if self._left < 0:
            raise ProtocolError(frames.CALM_DOWN, "too many frames without a request")

    def answered(self) -> None:
        """A response was sent to its end."""
        self._left += _FRAMES_PER_ANSWER

    def sent(self, size: int) -> None:
        """The client was sent this many bytes of responses."""
        self._left += size / _BYTES_PER_FRAME
