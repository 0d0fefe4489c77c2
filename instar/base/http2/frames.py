"""HTTP/2 frames (RFC 9113) as bytes: encoders of the few we send, and parsing helpers.

Used by the gRPC client (``wire/rpc``) and by the server's connections (``server/http/http2``).
"""

from __future__ import annotations

from struct import Struct

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW, CONTINUATION = (
    range(10)
)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_STREAMS, INITIAL_WINDOW, MAX_FRAME, MAX_HEADERS = range(1, 7)

NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_ERROR = 0, 1, 2, 3
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL = 5, 6, 7, 8
COMPRESSION_ERROR, CALM_DOWN, INADEQUATE_SECURITY = 9, 11, 12

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_SIZE = 9
MOST_PAYLOAD = 16384
"""Default maximum payload of a frame, in both directions; we never change it."""
DEFAULT_WINDOW = 65535
MOST_WINDOW = 2**31 - 1
MOST_STREAM = 2**31 - 1

HEAD = Struct(">BHBBI")
"""Length (in two parts), type, flags, stream."""
_NUMBER = Struct(">I")
_SETTING = Struct(">HI")


class ProtocolError(Exception):
    """The peer violates the protocol: nothing after it can be parsed."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return an HTTP/2 frame."""
    size = len(payload)
    return HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, stream) + payload


def settings(values: dict[int, int]) -> bytes:
    """Return a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*each) for each in values.items()))


def window_update(stream: int, more: int) -> bytes:
    return frame(WINDOW, 0, stream, _NUMBER.pack(more))


def reset(stream: int, code: int) -> bytes:
    """Return an RST_STREAM frame."""
    return frame(RST_STREAM, 0, stream, _NUMBER.pack(code))


def goaway(code: int, last: int = 0, text: bytes = b"") -> bytes:
    """Return a GOAWAY frame; ``last`` is the last stream that was or will be served."""
    return frame(GOAWAY, 0, 0, _NUMBER.pack(last) + _NUMBER.pack(code) + text)


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    if len(payload) % _SETTING.size:
        raise ProtocolError(PROTOCOL_ERROR, "settings that end too soon")
    return [(int(name), int(value)) for name, value in _SETTING.iter_unpack(payload)]


def read_number(payload: bytes, at: int = 0) -> int:
    """Read 32 bits; the caller masks the reserved bit where there is one."""
    if len(payload) < at + _NUMBER.size:
        raise ProtocolError(PROTOCOL_ERROR, "a frame that ends too soon")
    value: int = _NUMBER.unpack_from(payload, at)[0]
    return value


def strip_padding(payload: bytes, flags: int) -> bytes:
    """Return DATA (pass only the ``PADDED`` flag) or HEADERS without padding and priority."""
    if not flags & (PADDED | HAS_PRIORITY):
        return payload
    first, last = 0, len(payload)
    if flags & PADDED:
        first, last = 1, last - (payload[0] if payload else 0)  # an empty payload is too short
    if flags & HAS_PRIORITY:
        first += 5
    if first > last:
        raise ProtocolError(PROTOCOL_ERROR, "more padding than frame")
    return payload[first:last]
