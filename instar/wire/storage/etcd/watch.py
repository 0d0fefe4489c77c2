"""One subscription of the etcd store: a watch that reconnects and tracks its revision.

Created by ``store.py``; passes events to a ``Follower``. An idle watch does not report which
revision it has seen. When a reader needs a newer one (``expect``), the watch sends a progress
request, or writes a reserved key where the etcd release answers progress requests wrongly.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from instar.base.supervision import is_being_cancelled, report_failure
from instar.base.taskless_wait import with_timeout
from instar.wire.rpc.channel import Conversation, Messages
from instar.wire.rpc.status import GrpcCode, RpcError
from instar.wire.storage.etcd import messages as wire
from instar.wire.storage.etcd.client import EtcdClient, EtcdEndpoint, explain
from instar.wire.storage.event_followers import Follower
from instar.wire.storage.store import Compacted, Event, StoreError, Unavailable

_log = logging.getLogger(__name__)

_STUCK = 2.0
_PROGRESS_DELAY = 0.02
_NUDGE_DELAY = 0.2
_PROD_INTERVAL = 0.1

Translate = Callable[[wire.WatchEvent], Event | None]


class EtcdWatch:
    """Watch of a prefix in etcd, reopened at the last revision when it breaks."""

    def __init__(
        self,
        client: EtcdClient,
        span: tuple[bytes, bytes],
        translate: Translate,
        follower: Follower,
        nudge: Callable[[], Awaitable[None]],
    ) -> None:
        self._client, self._span, self._translate = client, span, translate
        self._follower, self._nudge = follower, nudge
        self._stream: Conversation | None = None
        self._endpoint: EtcdEndpoint | None = None
        self._progress_works: bool | None = None
        self._wanted = 0
        self._look: asyncio.TimerHandle | None = None
        self._prodding: asyncio.Task[None] | None = None
        self._running = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        self._follower.close()
        self._stop()

    def end(self, why: StoreError) -> None:
        self._follower.end(why)
        self._stop()

    def learn(self, event: Event) -> None:
        """Deliver an own write at once if it is the next revision (one write of ours is one
        revision)."""
        if self._follower.reached == event.revision - 1:
            self._follower.take((event,), event.revision)
        else:
            self.expect(event.revision)

    def expect(self, revision: int) -> None:
        """Make sure that the watch reaches this revision, because a reader waits for it."""
        self._wanted = max(self._wanted, revision)
        if self._follower.reached < self._wanted and self._look is None and self._prodding is None:
            # Usually the event is on its way; start a task only if it does not arrive soon.
            loop = asyncio.get_running_loop()
            self._look = loop.call_later(_PROGRESS_DELAY, self._check_progress)

    def _check_progress(self) -> None:
        self._look = None
        if self._follower.reached < self._wanted and not self._follower.closed:
            self._prodding = asyncio.get_running_loop().create_task(self._request_progress())

    @property
    def done(self) -> bool:
        return self._running.done()

    async def stopped(self) -> None:
        """Wait until the stream is released."""
        await asyncio.wait([self._running])

    def _stop(self) -> None:
        if self._look is not None:
            self._look.cancel()
        if self._prodding is not None:
            self._prodding.cancel()
        if self._stream is not None:
            self._stream.cancel()  # the task then ends by itself
        else:
            self._running.cancel()

    async def _run(self) -> None:
        pause = 0.02
        while not self._follower.closed:
            reached = self._follower.reached
            try:
                await self._follow()
            except StoreError as error:
                if self._follower.closed:
                    return
                _log.info("watch interrupted after revision %d: %s", reached, error)
            except (Exception, asyncio.CancelledError) as error:
                if is_being_cancelled(error):
                    raise
                report_failure("etcd-watch", error, f"revision {reached}")
            if self._endpoint is not None:
                self._client.leave(self._endpoint)
                self._endpoint = None
            pause = 0.02 if self._follower.reached > reached else min(pause * 2, 1.0)
            if not self._follower.closed:
                await asyncio.sleep(pause)

    async def _follow(self) -> None:
        """Read one stream until it breaks.

        It starts at the last seen revision, which is then skipped: so etcd reports when just that
        revision is compacted, where an older etcd may have lost a deletion.
        """
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        parts: list[Event] = []

        def told(data: bytes) -> None:
            if 0 < wire.events_up_to(data) <= self._follower.reached:
                return  # only revisions seen already, mostly own writes
            answer = wire.read_watch(data)
            if answer.cancelled:
                _finish_future(over, self._cancelled(answer))
            elif not answer.created:
                self._take(answer, parts)

        first = wire.watch_request(*self._span, max(1, self._follower.reached))
        endpoint, stream = await self._client.watch(first, told, partial(self._ended, over))
        self._endpoint, self._stream, self._progress_works = endpoint, stream, None
        try:
            await over
        finally:
            self._stream = None
            stream.cancel()

    def _ended(self, over: asyncio.Future[None], error: RpcError | None) -> None:
        if error is None:
            _finish_future(over, None)
            return
        if error.code is GrpcCode.UNAUTHENTICATED:
            self._client.forget_token()
        endpoint = self._endpoint
        _finish_future(over, explain(error, endpoint.address if endpoint else "watch"))

    def _take(self, answer: wire.WatchAnswer, parts: list[Event]) -> None:
        """Deliver whole revisions; an answer without events reports the watch's progress."""
        parts += filter(None, map(self._translate, answer.events))
        if answer.fragment:
            return
        # While a watch catches up, the header's revision is ahead of the events and must not count.
        last = answer.events[-1].kv.mod_revision if answer.events else answer.revision
        events = parts.copy()
        parts.clear()
        self._follower.take(events, last)

    def _cancelled(self, answer: wire.WatchAnswer) -> StoreError | None:
        """Return the error of a cancelled watch, or ``None`` if the subscription has ended with
        it."""
        if answer.compact_revision:
            self._follower.end(Compacted(answer.compact_revision))
        elif "permission denied" in answer.cancel_reason:
            self._follower.end(StoreError(f"etcd: {answer.cancel_reason}"))
        else:
            self._client.forget_token()
            return StoreError(f"etcd: {answer.cancel_reason or 'the watch was cancelled'}")
        return None

    async def _request_progress(self) -> None:
        try:
            await self._request_until_reached()
        except Exception as error:  # the waiting read asks again, or times out
            report_failure("etcd-watch", error)
        finally:
            self._prodding = None

    async def _request_until_reached(self) -> None:
        loop = asyncio.get_running_loop()
        seen, since, nudged = self._follower.reached, loop.time(), -1
        while self._follower.reached < self._wanted and not self._follower.closed:
            if self._follower.reached > seen:
                seen, since = self._follower.reached, loop.time()
            stalled = loop.time() - since
            if stalled > _STUCK:
                self._leave_silent_member()
                since = loop.time()
            elif not await self._ask_progress() and stalled > _NUDGE_DELAY and nudged != seen:
                nudged = seen  # one write per standstill is enough, since the watch will see it
                with suppress(StoreError):
                    await self._nudge()
            await asyncio.sleep(_PROD_INTERVAL)

    async def _ask_progress(self) -> bool:
        """Send a progress request; False where etcd would answer it before sending the events."""
        stream, endpoint = self._stream, self._endpoint
        if stream is None or endpoint is None:
            return False
        if self._progress_works is None:
            self._progress_works = reliable_progress(await self._client.version(endpoint))
        if self._progress_works:
            stream.send(wire.progress_request())
        return self._progress_works

    def _leave_silent_member(self) -> None:
        """Cancel the stream of a member that is stopped or cut off while its connection stays
        open."""
        if self._stream is not None:
            self._stream.cancel()


def reliable_progress(version: tuple[int, ...]) -> bool:
    """Return whether progress answers are reliable: before these releases one could overtake events
    it claims to cover."""
    return version >= (3, 5, 13) or (3, 4, 31) <= version < (3, 5)


def _finish_future(over: asyncio.Future[None], error: StoreError | None) -> None:
    if over.done():
        return
    if error is None:
        over.set_result(None)
    else:
        over.set_exception(error)


async def compacted_revision(client: EtcdClient, key: bytes) -> int:
    """Return the compacted revision, which etcd reports only to a watch of a compacted revision."""
    messages = Messages()
    first = wire.watch_request(key, b"", 1)
    endpoint, stream = await client.watch(first, messages.on_message, messages.on_end)
    try:
        compacted = await with_timeout(_STUCK, partial(_compacted_in, messages))
    except RpcError as error:
        raise Unavailable(str(explain(error, endpoint.address))) from error
    except TimeoutError as error:
        raise Unavailable(f"etcd {endpoint.address} does not answer") from error
    finally:
        stream.cancel()
    if not compacted:
        raise Unavailable(f"etcd {endpoint.address} does not report its compacted revision")
    return compacted


async def _compacted_in(messages: Messages) -> int:
    while (data := await messages.read()) is not None:
        answer = wire.read_watch(data)
        if answer.cancelled:
            return answer.compact_revision
    return 0
