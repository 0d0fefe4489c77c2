"""One call on an HTTP/2 connection: assembles messages and tracks how the call ends.

Receives headers and data from ``connection.py``; passes whole messages to its caller synchronously.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from instar.base.taskless_wait import Waiter
from instar.wire.rpc.headers import Headers
from instar.wire.rpc.status import OK_HEAD, GrpcCode, RpcError, read_trailers, refused_head

PREFIX_SIZE = 5
"""Size of the message prefix: compression flag and four bytes of length."""

OnMessage = Callable[[bytes], None]
OnEnd = Callable[[RpcError | None], None]


def frame_message(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


class Http2Stream:
    """Subclasses handle messages in ``on_message`` and the end in ``on_end``."""

    __slots__ = (
        "_partial",
        "answered",
        "deadline",
        "done",
        "ends",
        "head",
        "heard_all",
        "id",
        "pending",
        "received",
        "said_all",
        "window",
    )

    def __init__(self, head: bytes, deadline: float = inf) -> None:
        self.head, self.deadline = head, deadline
        self.id = 0  # 0 until the call gets a stream id
        self.window = 0
        """Bytes that the server accepts on this stream."""
        self.received = 0
        """Bytes received since the last window update."""
        self.pending = bytearray()
        """Data that waits for a window."""
        self.ends = False
        """Whether the stream ends after the pending data."""
        self.said_all = self.heard_all = False
        self.answered = False
        self.done = False
        self._partial = bytearray()

    def on_message(self, message: bytes) -> None:
        raise NotImplementedError

    def on_end(self, error: RpcError | None) -> None:
        raise NotImplementedError

    def take_headers(self, headers: Headers, last: bool) -> None:
        if not self.answered and headers == OK_HEAD:
            self.answered = True
        elif not self.answered:
            if not last and dict(headers).get(":status", "").startswith("1"):
                return  # an informational response
            self.answered = True
            refusal = refused_head(headers)
            if refusal is not None:
                self.finish(refusal)
                return
        elif not last:
            self.finish(RpcError(GrpcCode.INTERNAL, "headers in the middle of an answer"))
            return
        if last:
            self.finish(read_trailers(headers) or self._unfinished())

    def take_data(self, data: bytes, last: bool) -> None:
        if not self.answered:
            self.finish(RpcError(GrpcCode.INTERNAL, "an answer without headers"))
            return
        if self._partial or not _is_one_message(data):
            self._partial += data
            self._take_partial()
        else:
            self._deliver(data[PREFIX_SIZE:])
        if last and not self.done:
            self.finish(RpcError(GrpcCode.UNKNOWN, "the server's answer ends without a status"))

    def finish(self, error: RpcError | None) -> None:
        if not self.done:
            self.done = True
            self.pending.clear()
            self._partial.clear()
            self.on_end(error)

    def _take_partial(self) -> None:
        partial = self._partial
        while len(partial) >= PREFIX_SIZE and not self.done:
            end = PREFIX_SIZE + int.from_bytes(partial[1:PREFIX_SIZE], "big")
            if partial[0]:
                self.finish(
                    RpcError(
                        GrpcCode.INTERNAL,
                        "the server sent a compressed message, which was not requested",
                    )
                )
                return
            if len(partial) < end:
                return
            message = bytes(memoryview(partial)[PREFIX_SIZE:end])
            del partial[:end]
            self._deliver(message)

    def _deliver(self, message: bytes) -> None:
        try:
            self.on_message(message)
        except Exception as error:
            # An error in one caller's decoder must not end other calls.
            self.finish(RpcError(GrpcCode.INTERNAL, f"the answer cannot be read: {error}"))

    def _unfinished(self) -> RpcError | None:
        if self._partial:
            return RpcError(GrpcCode.INTERNAL, "the server's answer ends within a message")
        return None


def _is_one_message(data: bytes) -> bool:
    whole = len(data) >= PREFIX_SIZE and not data[0]
    return whole and int.from_bytes(data[1:PREFIX_SIZE], "big") == len(data) - PREFIX_SIZE


class Unary(Http2Stream):
    """Unary call: one request, one answer."""

    __slots__ = ("_message", "answer")

    def __init__(self, head: bytes, answer: Waiter[bytes], deadline: float) -> None:
        super().__init__(head, deadline)
        self.answer = answer
        self._message: bytes | None = None

    def on_message(self, message: bytes) -> None:
        if self._message is not None:
            self.finish(RpcError(GrpcCode.INTERNAL, "two answers to one call"))
        self._message = message

    def on_end(self, error: RpcError | None) -> None:
        if self.answer.done():
            return
        if error is not None:
            self.answer.set_exception(error)
        elif self._message is None:
            self.answer.set_exception(RpcError(GrpcCode.INTERNAL, "no message in the answer"))
        else:
            self.answer.set_result(self._message)


class Duplex(Http2Stream):
    """Bidirectional stream."""

    __slots__ = ("_on_end", "_on_message")

    def __init__(self, head: bytes, on_message: OnMessage, on_end: OnEnd) -> None:
        super().__init__(head)
        self._on_message, self._on_end = on_message, on_end

    def on_message(self, message: bytes) -> None:
        self._on_message(message)

    def on_end(self, error: RpcError | None) -> None:
        self._on_end(error)
