"""TLS transport between TCP transport and HTTP protocol, with buffers shared by all connections.

``lifecycle/lifetime.py`` puts a ``TlsListener`` before the HTTP connections. asyncio's own TLS
keeps two buffers and a page for each connection, which is most of the memory of an idle watch
(docs/explanation/performance.md). Here all connections of a listener share two buffers: OpenSSL
consumes the incoming buffer and fills the outgoing one within a call, so both are empty between
calls.

Handshakes have a budget of their own in each turn of the event loop (``loop_budget.py``), so that
a flood of new connections does not delay the requests of the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from time import monotonic
from typing import Any, cast

from instar.base import limits
from instar.server.http.loop_budget import LoopBudget

log = logging.getLogger(__name__)
_BUFFER_BYTES = 256 << 10
_RECORD_BYTES = 16 << 10
"""Bytes of one TLS record at most."""
_GOODBYE_SECONDS = 30.0


def _no_op() -> None:
    pass


class TlsListener:
    """Makes a TLS transport for each connection; passed to ``create_server`` without a context."""

    def __init__(
        self, context: Callable[[], ssl.SSLContext], above: Callable[[str | None], asyncio.Protocol]
    ) -> None:
        self.context = context
        """Returns the current context: certificates change while a server runs."""
        self.above = above
        """Makes the protocol above TLS, given the one that the handshake agreed on."""
        self.parted: Callable[[], None] = _no_op
        """Called when a connection has ended."""
        self.room = memoryview(bytearray(_BUFFER_BYTES))
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.handshakes = LoopBudget()

    def __call__(self) -> TlsTransport:
        return TlsTransport(self)


class TlsTransport(asyncio.BufferedProtocol):
    """The protocol of a TCP transport, and the transport of the HTTP protocol above it."""

    __slots__ = (
        "_above",
        "_closing",
        "_held",
        "_listener",
        "_outgoing",
        "_tcp",
        "_timer",
        "_tls",
    )

    def __init__(self, listener: TlsListener) -> None:
        self._listener = listener
        self._outgoing = listener.outgoing
        self._above: asyncio.Protocol | None = None
        """The HTTP protocol, once the handshake is done."""
        self._closing = False
        self._held = b""
        """Bytes of a handshake that waits for its turn; nothing more is read meanwhile."""
        self._timer: asyncio.TimerHandle | None = None
        self._tls = listener.context().wrap_bio(
            listener.incoming, listener.outgoing, server_side=True
        )

    # --- from TCP ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but not the base class.
        self._tcp = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(limits.HANDSHAKE_SECONDS, self.abort)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._listener.room

    def buffer_updated(self, nbytes: int) -> None:
        if self._closing:
            return  # only the client's close alert is waited for
        data = self._listener.room[:nbytes]
        if self._above is not None or self._listener.handshakes.admit(monotonic()):
            self._process(data)
            return
        self._held += data
        self._tcp.pause_reading()
        self._listener.handshakes.wait(self, new=True)

    def take_turn(self) -> None:
        """Continue the handshake; called by the budget."""
        held, self._held = self._held, b""
        if self._closing or not held:
            return
        self._tcp.resume_reading()
        self._process(held)

    def _process(self, received: bytes | memoryview) -> None:
        incoming = self._listener.incoming
        incoming.write(received)
        try:
            if self._above is None and not self._do_handshake():
                return
            data, gone = self._received(incoming)
        except ssl.SSLError as error:
            self._failed(error)
            return
        finally:
            if incoming.pending:
                incoming.read()
            self._send()
        if data and self._above is not None:
            self._above.data_received(data)
        if gone:
            self.close()

    def eof_received(self) -> None:
        """Returns None, so that TCP closes the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._stop_timer()
        above, self._above = self._above, None
        if above is not None:
            above.connection_lost(exc)
        self._listener.parted()

    def pause_writing(self) -> None:
        if self._above is not None:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        if self._above is not None:
            self._above.resume_writing()

    # --- TLS -----------------------------------------------------------------------------

    def _do_handshake(self) -> bool:
        """Continue the handshake; return whether it is done. Raises ``SSLError``."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._stop_timer()
        self._send()  # the handshake goes out before data of the protocol above
        self._above = self._listener.above(self._tls.selected_alpn_protocol())
        self._above.connection_made(cast(asyncio.BaseTransport, self))
        return True

    def _received(self, incoming: ssl.MemoryBIO) -> tuple[bytes, bool]:
        """Decrypted data, and whether it was the last. Raises ``SSLError``."""
        tls = self._tls
        pieces: list[bytes] = []
        try:
            while incoming.pending or tls.pending():
                piece = tls.read(_RECORD_BYTES)
                if not piece:
                    return b"".join(pieces), True
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass
        return (pieces[0] if len(pieces) == 1 else b"".join(pieces)), False

    def _send(self) -> None:
        if self._outgoing.pending:
            self._tcp.write(self._outgoing.read())

    def _failed(self, error: ssl.SSLError) -> None:
        """Close after an error of TLS; the alert of OpenSSL has been sent already."""
        log.debug("TLS with a client failed: %s", error)
        self._closing = True
        self._tcp.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- from above ----------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._closing:
            return
        self._tls.write(data)
        self._tcp.write(self._outgoing.read())

    def close(self) -> None:
        """Send what was written and a close alert, then wait for the client's: closing a socket
        with unread data makes the kernel discard what the client has not read yet."""
        if self._closing:
            return
        self._closing = True
        with contextlib.suppress(ssl.SSLError):  # the client's alert has not arrived
            self._tls.unwrap()
        self._send()
        if self._tcp.is_closing():
            return
        self._tcp.write_eof()
        self._tcp.resume_reading()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_GOODBYE_SECONDS, self.abort)

    def abort(self) -> None:
        self._closing = True
        self._tcp.abort()

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._tcp.pause_reading()

    def resume_reading(self) -> None:
        self._tcp.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._tcp.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._tcp.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls if name == "ssl_object" else self._tcp.get_extra_info(name, default)
