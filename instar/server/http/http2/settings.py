"""Settings of both sides of an HTTP/2 connection; checks of a client's, as RFC 9113 requires.

``connection.py`` sends the greeting and applies what the client has sent.
"""

from __future__ import annotations

from instar.base import limits
from instar.base.http2 import frames
from instar.base.http2.frames import ProtocolError

MOST_FRAME = 256 << 10
"""Largest payload of a frame that clients may send."""
_MOST_ENTRIES = 64
"""Settings in one frame; there are seven."""
_LARGEST_FRAME = 2**24 - 1


def greeting(most_streams: int) -> bytes:
    """The first frames of the server."""
    ours = {
        frames.MAX_STREAMS: most_streams,
        frames.INITIAL_WINDOW: limits.STREAM_WINDOW,
        frames.MAX_FRAME: MOST_FRAME,
        frames.MAX_HEADERS: limits.MAX_HEAD,
    }
    more = limits.CONNECTION_WINDOW - frames.DEFAULT_WINDOW
    return frames.settings(ours) + frames.window_update(0, more)


def read_settings(flags: int, number: int, payload: bytes) -> dict[int, int]:
    """Return the settings, the last of each name. Raises ``ProtocolError``."""
    if number:
        raise ProtocolError(frames.PROTOCOL_ERROR, f"settings of stream {number}")
    if len(payload) % 6 or (flags & frames.ACK and payload):
        raise ProtocolError(frames.FRAME_SIZE_ERROR, "settings of another size")
    if len(payload) > 6 * _MOST_ENTRIES:
        raise ProtocolError(frames.CALM_DOWN, "too many settings")
    found = dict(frames.read_settings(payload))
    if found.get(frames.INITIAL_WINDOW, 0) > frames.MOST_WINDOW:
        raise ProtocolError(frames.FLOW_ERROR, "a window without end")
    if (
        not frames.MOST_PAYLOAD
        <= found.get(frames.MAX_FRAME, frames.MOST_PAYLOAD)
        <= _LARGEST_FRAME
    ):
        raise ProtocolError(frames.PROTOCOL_ERROR, "a frame size out of range")
    if found.get(frames.ENABLE_PUSH, 0) > 1:
        raise ProtocolError(frames.PROTOCOL_ERROR, "a push that is neither on nor off")
    return found


def check_ping(number: int, payload: bytes) -> None:
    """Raises ``ProtocolError``."""
    if number or len(payload) != 8:
        raise ProtocolError(frames.FRAME_SIZE_ERROR, "a ping of another size, or of a stream")


def four_bytes(payload: bytes) -> int:
    """Return the number that is the whole payload. Raises ``ProtocolError``."""
    if len(payload) != 4:
        raise ProtocolError(frames.FRAME_SIZE_ERROR, f"{len(payload)} bytes instead of four")
    return frames.read_number(payload)
