"""An HTTP/2 client on a TLS connection, for tests of a server behind a real port."""

from __future__ import annotations

import ssl

from instar.base.http2 import frames
from instar.base.http2.hpack import HeaderDecoder
from tests.support.http2 import WIDE, Frame, headers, request_block


class TlsClient:
    """One HTTP/2 connection, read frame by frame."""

    def __init__(self, tls: ssl.SSLSocket, token: str, *, wide: bool = True) -> None:
        """Open every window as far as it goes, or leave them at 64 KiB."""
        self._tls, self._token = tls, token
        self._unread = b""
        self._decoder = HeaderDecoder()
        tls.sendall(frames.PREFACE + frames.settings({}) + (WIDE if wide else b""))

    def ask(self, stream: int, path: str, method: str = "GET", body: bytes = b"") -> None:
        more = [(b"authorization", f"Bearer {self._token}".encode())]
        block = request_block(method, path, [*more, (b"content-type", b"application/json")])
        sent = headers(stream, block, last=not body)
        if body:
            sent += frames.frame(frames.DATA, frames.END_STREAM, stream, body)
        self._tls.sendall(sent)

    def next(self, *kinds: int) -> Frame:
        """The next frame of these kinds; others are passed over."""
        while True:
            high, low, kind, flags, stream = frames.HEAD.unpack(self._exactly(frames.HEAD_SIZE))
            payload = self._exactly(high << 16 | low)
            if kind in kinds:
                return Frame(kind, flags, stream, payload)

    def status(self) -> bytes:
        found = self._decoder.decode(self.next(frames.HEADERS).payload, 1 << 20)
        return dict(found or ())[b":status"]

    def _exactly(self, size: int) -> bytes:
        while len(self._unread) < size:
            data = self._tls.recv(1 << 16)
            if not data:
                raise EOFError
            self._unread += data
        found, self._unread = self._unread[:size], self._unread[size:]
        return found
