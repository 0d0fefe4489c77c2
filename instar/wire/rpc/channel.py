"""gRPC channel to one server: connects on demand and reconnects after a loss.

Used by ``wire/storage/etcd/client.py`` and ``wire/storage/encryption/plugin.py``, which decide
about retries and failover.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from functools import lru_cache

from instar.base.taskless_wait import waiter
from instar.wire.rpc.connection import Http2Connection
from instar.wire.rpc.headers import literal
from instar.wire.rpc.status import GrpcCode, RpcError
from instar.wire.rpc.stream import Duplex, Unary, frame_message

Metadata = tuple[tuple[str, str], ...]

_CONNECT_SECONDS = 5.0
_REST_AFTER_FAILURE = 0.1
"""Seconds after a failed connect in which calls fail at once instead of connecting again."""
_MOST_HEADS = 64
_POST, _HTTP, _HTTPS = b"\x83", b"\x86", b"\x87"  # entries of HPACK's static table


class Conversation:
    """The caller's side of a bidirectional stream."""

    def __init__(self, connection: Http2Connection, stream: Duplex) -> None:
        self._connection, self._stream = connection, stream

    def send(self, message: bytes) -> None:
        self._connection.send(self._stream, frame_message(message))

    def cancel(self) -> None:
        self._connection.give_up(self._stream, RpcError(GrpcCode.CANCELLED, "given up"))


class GrpcChannel:
    """``address`` is ``host:port``, ``unix:PATH`` or ``unix-abstract:NAME``."""

    def __init__(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        self._address, self._tls = address, tls
        self._connection: Http2Connection | None = None
        self._connecting: asyncio.Task[Http2Connection] | None = None
        self._failed: tuple[float, RpcError] | None = None
        self._older: set[Http2Connection] = set()
        """Connections that accept no new calls but have calls in flight."""
        self._heads: dict[tuple[str, Metadata], bytes] = {}
        self._closed = False

    async def call(
        self,
        method: str,
        request: bytes,
        patience: float,
        metadata: Metadata = (),
        prompt: bool = False,
    ) -> bytes:
        """Make a unary call and return the answer's message. Raises ``RpcError``.

        With ``prompt`` the request is sent at once instead of at the end of this loop iteration,
        and a caller without a task resumes in the step that receives the answer.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        connection = self._connection
        if connection is None or not connection.takes_calls:
            connection = await self._connected(patience)
            patience = deadline - loop.time()
        head = self._head(method, metadata) + _timeout(max(1, int(patience * 1000)))
        stream = Unary(head, waiter(prompt), deadline)
        connection.open(stream, frame_message(request), True)
        if prompt:
            connection.flush()
        try:
            return await stream.answer
        except asyncio.CancelledError:
            connection.give_up(stream, RpcError(GrpcCode.CANCELLED, "given up"))
            raise

    async def converse(
        self,
        method: str,
        first: bytes,
        on_message: Callable[[bytes], None],
        on_end: Callable[[RpcError | None], None],
        patience: float,
        metadata: Metadata = (),
        *,
        last: bool = False,
    ) -> Conversation:
        """Open a stream. Messages are passed on as they arrive, the end once. With ``last`` the
        first request is the only one."""
        connection = self._connection
        if connection is None or not connection.takes_calls:
            connection = await self._connected(patience)
        stream = Duplex(self._head(method, metadata), on_message, on_end)
        connection.open(stream, frame_message(first), last)
        return Conversation(connection, stream)

    async def close(self) -> None:
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        connections = [*self._older, *([self._connection] if self._connection else [])]
        for connection in connections:
            connection.close()
            await connection.closed

    def _head(self, method: str, metadata: Metadata) -> bytes:
        head = self._heads.get((method, metadata))
        if head is None:
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()  # drop heads of expired tokens
            local = self._address.startswith("unix")
            pairs = (
                (":path", method),
                (":authority", "localhost" if local else self._address),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", "instar"),
                *metadata,
            )
            head = _POST + (_HTTPS if self._tls else _HTTP)
            head += b"".join(literal(*pair) for pair in pairs)
            self._heads[method, metadata] = head
        return head

    async def _connected(self, patience: float) -> Http2Connection:
        loop = asyncio.get_running_loop()
        if self._closed:
            raise RpcError(GrpcCode.UNAVAILABLE, "the channel is closed", unsent=True)
        if self._connecting is None:
            if self._failed is not None and loop.time() < self._failed[0] + _REST_AFTER_FAILURE:
                raise self._failed[1].copy()
            self._connecting = loop.create_task(self._connect())
            self._connecting.add_done_callback(self._remember)
        waited = self._connecting
        await asyncio.wait([waited], timeout=patience)
        if not waited.done():
            raise RpcError(GrpcCode.UNAVAILABLE, "no connection in time", unsent=True)
        if waited.cancelled():
            raise RpcError(GrpcCode.UNAVAILABLE, "the channel is closed", unsent=True)
        connection = waited.result()
        if not connection.takes_calls:
            raise RpcError(GrpcCode.UNAVAILABLE, "the connection was lost again", unsent=True)
        return connection

    def _remember(self, task: asyncio.Task[Http2Connection]) -> None:
        self._connecting = None
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, RpcError):
            self._failed = asyncio.get_running_loop().time(), error
            return
        if self._connection is not None and not self._connection.closed.done():
            older = self._connection
            self._older.add(older)
            older.closed.add_done_callback(lambda _: self._older.discard(older))
        self._connection, self._failed = task.result(), None

    async def _connect(self) -> Http2Connection:
        """Connect; nothing is sent before the server's settings arrive."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                connection = await self._reach(loop)
                try:
                    await connection.ready
                except BaseException:
                    connection.close()
                    raise
        except TimeoutError as error:
            raise _unreachable("no answer in time") from error
        except (OSError, RpcError) as error:
            raise _unreachable(str(error) or type(error).__name__) from error
        return connection

    async def _reach(self, loop: asyncio.AbstractEventLoop) -> Http2Connection:
        kind, _, rest = self._address.partition(":")
        if kind in ("unix", "unix-abstract"):
            path = f"\0{rest}" if kind == "unix-abstract" else rest
            return (await loop.create_unix_connection(lambda: Http2Connection(loop), path))[1]
        host, _, port = self._address.rpartition(":")
        host = host.strip("[]")
        name = host if self._tls else None
        made = await loop.create_connection(
            lambda: Http2Connection(loop), host, int(port), ssl=self._tls, server_hostname=name
        )
        return made[1]


@lru_cache(16)
def _timeout(milliseconds: int) -> bytes:
    return literal("grpc-timeout", f"{milliseconds}m")


def _unreachable(why: str) -> RpcError:
    return RpcError(GrpcCode.UNAVAILABLE, f"failed to connect: {why}", unsent=True)


class Messages:
    """Buffer of a stream's messages for callers that read instead of using callbacks."""

    def __init__(self) -> None:
        self._found: deque[bytes] = deque()
        self._ended = False
        self._error: RpcError | None = None
        self._news = asyncio.Event()

    def on_message(self, message: bytes) -> None:
        self._found.append(message)
        self._news.set()

    def on_end(self, error: RpcError | None) -> None:
        self._ended, self._error = True, error
        self._news.set()

    async def read(self) -> bytes | None:
        """Return the next message, ``None`` at the end. Raises ``RpcError``."""
        while not self._found:
            if self._error is not None:
                raise self._error
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        return self._found.popleft()
