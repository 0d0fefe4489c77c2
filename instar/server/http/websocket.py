"""WebSocket (RFC 6455) as a server speaks it to a client that only reads: the handshake, frames.

``rest/websocket_watch.py`` sends watches with it. Messages of clients are read and dropped; pings
and closes are answered. The module has no idea what a message holds.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha1

from instar.server.http.messages import Request, Response

TEXT, BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
NORMAL, PROTOCOL_ERROR = 1000, 1002
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FINAL, _MASKED, _MOST_CONTROL = 0x80, 0x80, 125
_VERSION = b"13"


def is_websocket(request: Request) -> bool:
    """Whether the client asks to change the protocol to WebSocket."""
    if request.headers.get(b"upgrade", b"").lower() != b"websocket":
        return False
    return b"upgrade" in request.headers.get(b"connection", b"").lower()


def refused_handshake(request: Request) -> Response | None:
    """The response to a handshake that upstream refuses: it demands an origin, and no more than one
    subprotocol; None for a good one."""
    headers = request.headers
    if headers.get(b"sec-websocket-version") != _VERSION:
        text = b"missing or bad WebSocket Version"
        return Response(400, (text,), [(b"sec-websocket-version", _VERSION)], bare=True)
    if not headers.get(b"sec-websocket-key"):
        return Response(400, (b"mismatch challenge/response",), bare=True)
    if not headers.get(b"origin"):
        return Response(403, bare=True)
    if b"," in headers.get(b"sec-websocket-protocol", b""):
        return Response(400, bare=True)
    return None


def accepted_handshake(request: Request) -> Response:
    """The head of the response that changes the protocol; its stream is the caller's."""
    digest = sha1(request.headers[b"sec-websocket-key"] + _GUID, usedforsecurity=False).digest()
    headers = [
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-accept", b64encode(digest)),
    ]
    protocol = request.headers.get(b"sec-websocket-protocol", b"").strip()
    if protocol:
        headers.append((b"sec-websocket-protocol", protocol))
    return Response(101, (), headers, bare=True, raw=True)


def frame(kind: int, data: bytes) -> bytes:
    """A whole message in one frame."""
    size = len(data)
    if size <= _MOST_CONTROL:
        head = bytes((_FINAL | kind, size))
    elif size < 1 << 16:
        head = bytes((_FINAL | kind, 126)) + size.to_bytes(2)
    else:
        head = bytes((_FINAL | kind, 127)) + size.to_bytes(8)
    return head + data


def close_frame(code: int) -> bytes:
    return frame(_CLOSE, code.to_bytes(2))


class ClientFrames:
    """Sink of the client's bytes: answers pings, reports the end, drops messages without holding
    them."""

    def __init__(self, send: Callable[[bytes], object], ended: Callable[[int], None]) -> None:
        """``ended`` gets the code with which to close: 0 where the client is gone already."""
        self._send, self._ended = send, ended
        self._unread = b""
        self._to_drop = 0
        self._over = False

    def take(self, data: bytes) -> bool:
        if self._over:
            return True
        dropped = min(self._to_drop, len(data))
        self._to_drop -= dropped
        self._unread += data[dropped:]
        while not self._over and not self._to_drop and self._next():
            pass
        return True

    def end(self) -> None:
        self._end(0)

    def broken(self, error: Exception) -> None:
        self._end(0)

    def _next(self) -> bool:
        """Take one frame from what was received; False where more bytes are needed."""
        data = self._unread
        if len(data) < 2:
            return False
        kind, size, begin = data[0] & 0x0F, data[1] & 0x7F, 2
        if not data[1] & _MASKED or (kind >= _CLOSE and size > _MOST_CONTROL):
            self._end(PROTOCOL_ERROR)
            return False
        if size > _MOST_CONTROL:
            begin += 2 if size == 126 else 8
            if len(data) < begin:
                return False
            size = int.from_bytes(data[2:begin])
        begin += 4
        if kind < _CLOSE:
            held = data[begin : begin + size]
            missing = begin + size - len(data)
            self._unread, self._to_drop = data[begin + len(held) :], max(missing, 0)
            return True
        if len(data) < begin + size:
            return False
        self._unread = data[begin + size :]
        if kind == _CLOSE:
            self._end(NORMAL)
        elif kind == _PING:
            mask = data[begin - 4 : begin] * (size // 4 + 1)
            payload = bytes(one ^ other for one, other in zip(data[begin:], mask, strict=False))
            self._send(frame(_PONG, payload[:size]))
        return True

    def _end(self, code: int) -> None:
        if not self._over:
            self._over, self._unread = True, b""
            self._ended(code)
