"""An HTTP/2 client without a network: what a test sends is read at once, what comes back is kept
as frames. Nothing is done by itself: windows, settings and pings are the test's own business."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, cast

from instar.base.http2 import frames
from instar.base.http2.hpack import HeaderDecoder, literal
from instar.kube.access.attributes import User
from instar.server.http.http2.connection import ServerHttp2Connection
from instar.server.http.loop_budget import LoopBudget
from instar.server.http.messages import Request, Response
from instar.server.http.protocols import Connections

Handler = Callable[[Request, User | None], Awaitable[Response]]
WIDE = frames.settings({frames.INITIAL_WINDOW: 1 << 30}) + frames.window_update(0, 1 << 30)


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes


def request_block(
    method: str = "GET", path: str = "/", more: Iterable[tuple[bytes, bytes]] = ()
) -> bytes:
    pseudo = ((b":method", method.encode()), (b":scheme", b"https"), (b":path", path.encode()))
    return b"".join(literal(*field) for field in (*pseudo, (b":authority", b"x"), *more))


def headers(stream: int, block: bytes, *, last: bool = True, whole: bool = True) -> bytes:
    flags = (frames.END_STREAM if last else 0) | (frames.END_HEADERS if whole else 0)
    return frames.frame(frames.HEADERS, flags, stream, block)


def get(stream: int, path: str = "/") -> bytes:
    return headers(stream, request_block("GET", path))


def data(stream: int, payload: bytes, *, last: bool = False) -> bytes:
    return frames.frame(frames.DATA, frames.END_STREAM if last else 0, stream, payload)


class MemoryTransport:
    """Keeps what is written; a test says when the client reads it."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.writes = 0
        self.unread = 0
        self.reading = True
        self.closed = self.aborted = False

    def get_extra_info(self, name: str) -> Any:
        return None

    def set_write_buffer_limits(self, high: int) -> None: ...

    def write(self, data: bytes) -> None:
        self.writes += 1
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.unread

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.closed = True


class MemoryClient:
    """One connection to a handler."""

    def __init__(self, handler: Handler, *, opening: bytes = WIDE, **options: Any) -> None:
        self.service = Connections(cast(Any, handler), **options)
        self.service.turns = LoopBudget(seconds=1000.0)  # however slow the machine is
        self.connection = cast(ServerHttp2Connection, self.service("h2"))
        self.transport = MemoryTransport()
        self.connection.connection_made(cast(asyncio.BaseTransport, self.transport))
        self._decoder = HeaderDecoder()
        if opening:
            greeting = b"" if opening[3:4] == b"\x04" else frames.settings({})
            self.send(frames.PREFACE + greeting + opening)
            self.take()

    def send(self, *parts: bytes) -> None:
        self.connection.data_received(b"".join(parts))

    def take(self) -> list[Frame]:
        """The frames that were written since the last call."""
        data, found = bytes(self.transport.written), []
        self.transport.written.clear()
        while data:
            high, low, kind, flags, stream = frames.HEAD.unpack_from(data)
            end = frames.HEAD_SIZE + (high << 16 | low)
            found.append(Frame(kind, flags, stream, data[frames.HEAD_SIZE : end]))
            data = data[end:]
        return found

    async def settled(self, turns: int = 20) -> list[Frame]:
        """The frames that were written after some turns of the event loop."""
        for _ in range(turns):
            await asyncio.sleep(0)
        return self.take()

    def fields(self, frame: Frame) -> dict[bytes, bytes]:
        return dict(self._decoder.decode(frame.payload, 1 << 20) or ())

    def lose(self) -> None:
        self.connection.connection_lost(None)


def body_of(found: Iterable[Frame], stream: int = 1) -> bytes:
    return b"".join(
        frame.payload for frame in found if frame.kind == frames.DATA and frame.stream == stream
    )


def of_kind(found: Iterable[Frame], kind: int) -> list[Frame]:
    return [frame for frame in found if frame.kind == kind]


def code_of(frame: Frame) -> int:
    """The error code of a GOAWAY or RST_STREAM frame."""
    return frames.read_number(frame.payload, 4 if frame.kind == frames.GOAWAY else 0)
