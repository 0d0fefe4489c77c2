"""One HTTP/2 stream of the server: answers its request, and sends the response at its own pace.

``connection.py`` makes one for each request; the handler's response may be a stream of events
(``Feed``), for which this is the ``Outlet``. A watch is a stream without task and without timer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, Protocol

from instar.base import limits
from instar.base.eager_tasks import TasklessCoroutine, start
from instar.base.http2 import frames
from instar.kube.access.attributes import User
from instar.server.http.http2.heads import response_block
from instar.server.http.http2.incoming import IncomingRequest
from instar.server.http.http2.sending import Http2Sender
from instar.server.http.messages import TEXT_TYPE, Feed, Request, Response
from instar.server.http.request_service import RequestService
from instar.server.http.write_batching import join_pieces

log = logging.getLogger(__name__)
_SMALL = 64 << 10
"""Bytes handed over at once; more is handed over in pieces, at the client's pace."""
_PIECE = 64 << 10
_TURN = 1 << 20


class StreamOwner(Protocol):
    """The connection of a stream."""

    service: RequestService
    sender: Http2Sender
    peer: User | None
    always: bytes
    """The encoded headers of every response."""
    unread_answers: int
    """Bytes of small responses that the client has not read."""

    def widen(self, stream: ServerHttp2Stream, more: int) -> None:
        """Let the client send more of the request's body."""
        ...

    def release_body(self, stream: ServerHttp2Stream) -> None:
        """The request's body is no longer held."""
        ...

    def forget(self, stream: ServerHttp2Stream) -> None:
        """The stream has ended."""
        ...


class ServerHttp2Stream:
    """A request and its response."""

    __slots__ = (
        "_feed",
        "_offset",
        "_owner",
        "_pending",
        "_small",
        "_stalled",
        "_task",
        "_timer",
        "_writable",
        "body",
        "closed",
        "ends",
        "incoming",
        "number",
        "unsent",
        "window",
    )

    def __init__(self, owner: StreamOwner, number: int) -> None:
        self._owner = owner
        self.number = number
        self.incoming: IncomingRequest | None = None
        """The request, until all of it is received."""
        self.body = 0
        """Bytes of the request's body that are held."""
        self.window = owner.sender.initial_window
        self.unsent = 0
        self.ends = False
        self.closed = False
        self._pending: deque[bytes] | None = None
        self._offset = 0
        """Bytes of the first pending piece that are sent."""
        self._small = 0
        """Bytes counted in ``unread_answers``."""
        self._stalled: tuple[int, float] | None = None
        """How many bytes waited when the client last took some, and the time."""
        self._feed: Feed | None = None
        self._task: asyncio.Task[Any] | TasklessCoroutine | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._writable: asyncio.Future[None] | None = None

    # --- the request ---------------------------------------------------------------------

    def serve(self, request: Request) -> None:
        if self.closed:
            return
        started = start(self._exchange(request))
        if started is None:
            return
        self._task = started
        if request.patience:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(request.patience, request.expire, started)

    async def _exchange(self, request: Request) -> None:
        """Write the response in the step that made it, not in a callback after it."""
        try:
            response = await self._owner.service.handler(request, self._owner.peer)
        except (Exception, asyncio.CancelledError) as failure:
            # Unless the client left, it waits for a response: reset the stream instead.
            self._task = None
            if not self.closed:
                log.error("%s %s has no response", request.method, request.path, exc_info=failure)
                self.abort()
            return
        finally:
            self._task = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        self._respond(request, response)

    def _respond(self, request: Request, response: Response) -> None:
        service = self._owner.service
        self._owner.release_body(self)
        if response.stream is not None and (
            self.closed or (request.method == "HEAD" and not response.raw)
        ):
            response.stream.close()
        elif response.stream is not None:
            self._open_stream(response, response.stream)
            return
        if self.closed:
            return
        if request.method == "HEAD":
            self._write_head(response, sized=True, last=True)
            return
        if response.length > _SMALL and not service.answers(self, response.held):
            response = service.refused(request)
        if response.length > _SMALL:
            self._task = asyncio.get_running_loop().create_task(
                self._write_large(request, response)
            )
        else:
            self._write_small(response)

    # --- the source of a body that is passed on -------------------------------------------

    def pause_body(self) -> None:
        if self.incoming is not None:
            self.incoming.pause(True)

    def resume_body(self) -> None:
        if self.incoming is not None:
            self.incoming.pause(False)
            self._owner.widen(self, self.incoming.widen())

    # --- the response --------------------------------------------------------------------

    def _write_head(self, response: Response, *, sized: bool, last: bool) -> None:
        owner = self._owner
        block = response_block(response, owner.always, sized)
        owner.sender.headers(self.number, frames.END_STREAM if last else 0, block)
        if last:
            self.over()

    def _write_small(self, response: Response) -> None:
        body = b"".join(response.chunks)
        self._write_head(response, sized=True, last=not body)
        if body:
            self._owner.sender.data(self, body, True)
            if self.unsent:
                self._small = len(body)
                self._owner.unread_answers += self._small

    async def _write_large(self, request: Request, response: Response) -> None:
        try:
            self._write_head(response, sized=True, last=False)
            await self._write_body(response)
        except Exception as failure:  # the client would wait for the rest for ever
            if not isinstance(failure, ConnectionError):
                log.error("%s %s was aborted", request.method, request.path, exc_info=failure)
            self._task = None
            self.abort()
        finally:
            self._task = None
            self._owner.service.answered(self)

    async def _write_body(self, response: Response) -> None:
        sent = 0
        for part in join_pieces(b"", response.pieces(_PIECE), _PIECE):
            self._owner.sender.data(self, part, False)
            await self._drain()
            self._owner.service.sent(self, len(part))
            sent += len(part)
            if sent > _TURN:  # other streams get their turn, however fast this client reads
                sent = 0
                await asyncio.sleep(0)
        self._task = None  # the end of the stream must not cancel it
        self._owner.sender.data(self, b"", True)

    async def _drain(self) -> None:
        if self.unsent and not self.closed:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable
            self._writable = None
        if self.closed:
            raise ConnectionResetError

    def _open_stream(self, response: Response, feed: Feed) -> None:
        self._feed = feed
        self._write_head(response, sized=False, last=False)
        feed.open(self)

    # --- the feed's outlet ---------------------------------------------------------------

    def send(self, data: bytes) -> bool:
        if data and not self.closed:
            self._owner.sender.data(self, data, False)
        return not self.unsent

    def backlog(self) -> int:
        return self.unsent

    def finish(self) -> None:
        if self._feed is not None and not self.closed:
            self._feed = None
            self._owner.sender.data(self, b"", True)

    def abort(self) -> None:
        self.reset(frames.INTERNAL_ERROR)

    # --- for the sender ------------------------------------------------------------------

    def hold(self, data: bytes) -> None:
        if self._pending is None:
            self._pending = deque()
        if data:
            self._pending.append(data)
            self.unsent += len(data)

    def take(self, size: int) -> bytes | memoryview:
        assert self._pending is not None
        first, begin = self._pending[0], self._offset
        end = begin + size
        if end < len(first):
            self._offset = end
            self.unsent -= size
            return memoryview(first)[begin:end]
        self._pending.popleft()
        self._offset = 0
        data = memoryview(first)[begin:] if begin else first
        self.unsent -= len(data)
        return data

    def drained(self) -> None:
        self._stalled = None
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        elif self._feed is not None:
            self._feed.resume()

    def over(self) -> None:
        """The response is complete; the rest of the request is not needed."""
        self._owner.sender.answered()
        if self.incoming is not None:
            self._owner.sender.write(frames.reset(self.number, frames.NO_ERROR))
        self._end()

    # --- the end -------------------------------------------------------------------------

    def is_late(self, now: float) -> bool:
        """Whether the client has stopped sending the request, or reading the response, of which
        the server holds the rest in memory."""
        if self.incoming is not None and now > self.incoming.deadline:
            return True
        if not self.unsent:
            self._stalled = None
        elif self._stalled is None or self._stalled[0] != self.unsent:
            self._stalled = self.unsent, now
        return self._stalled is not None and now - self._stalled[1] > limits.UNREAD_SECONDS

    def reset(self, code: int) -> None:
        """End the stream without the rest of its response."""
        if not self.closed:
            self._owner.sender.write(frames.reset(self.number, code))
            self._end()

    def answer_early(self, status: int, text: bytes) -> None:
        """Respond before all of the request is received; the rest is not read."""
        self._write_small(Response(status, (text,), [TEXT_TYPE]))

    def end(self) -> None:
        """The client has reset the stream, or the connection is lost."""
        if not self.closed:
            self._end()

    def _end(self) -> None:
        self.closed = True
        owner = self._owner
        owner.unread_answers -= self._small
        self._small = self.unsent = 0
        self._pending = None
        incoming, self.incoming = self.incoming, None
        if incoming is not None and incoming.stream is not None:
            incoming.stream.fail()
        owner.sender.drop(self)
        owner.release_body(self)
        owner.service.answered(self)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        owner.forget(self)
