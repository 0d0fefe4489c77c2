"""Past events of one key, read from etcd's revisions as far as they are not compacted.

Called by ``store.py`` for ``Store.past``. etcd replays past events only to watches, and a watch
does not mark the end of the replay: for a live key a read gives its last write, for a deleted one
only a progress notification proves that its last deletion was sent. A history that may lack its end
is never returned, because it would show an object, or the owner of a namespace, wrongly.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from instar.base.fast_dataclass import dataclass
from instar.base.taskless_wait import with_timeout
from instar.wire.rpc.channel import Conversation, Messages
from instar.wire.rpc.status import RpcError
from instar.wire.storage.etcd import messages as wire
from instar.wire.storage.etcd.client import RANGE, EtcdClient, EtcdEndpoint, HistoryGone, explain
from instar.wire.storage.etcd.watch import reliable_progress
from instar.wire.storage.store import Unavailable

_TIMEOUT_SECONDS = 10.0
_PROGRESS_SECONDS = 0.1
"""Seconds between progress requests; one sent before the watch has caught up gets no answer."""
_SILENCE = 0.5
_SILENCES = 2
"""How many silent intervals in a row, while the member answers other calls on the same connection,
count as the end of history for etcd releases without reliable progress answers."""


@dataclass(slots=True)
class _HistoryWatch:
    """A watch stream that replays the past of a key."""

    client: EtcdClient
    endpoint: EtcdEndpoint
    stream: Conversation
    messages: Messages
    found: list[wire.WatchEvent]

    async def answer(self) -> wire.WatchAnswer:
        data = await self.messages.read()
        if data is None:
            raise Unavailable(f"etcd {self.endpoint.address} ended the watch that reads history")
        answer = wire.read_watch(data)
        if answer.cancelled:
            raise _StartCompacted(answer)
        self.found += answer.events
        return answer

    async def up_to(self, revision: int) -> None:
        while not self.found or self.found[-1].kv.mod_revision < revision:
            await self.answer()

    async def to_the_present(self, target: int) -> None:
        version = await self.client.version(self.endpoint)
        if reliable_progress(version):
            await self._until_progress(target)
        else:
            await self._until_silent(version)

    async def _until_progress(self, target: int) -> None:
        while True:
            self.stream.send(wire.progress_request())
            answer = await _within_timeout(_PROGRESS_SECONDS, self.answer)
            if answer is None or answer.created or answer.events or answer.fragment:
                continue
            if answer.revision >= target:
                return

    async def _until_silent(self, version: tuple[int, ...]) -> None:
        silences = 0
        while silences < _SILENCES or (self.found and not self.found[-1].deleted):
            if version == (0,):
                raise Unavailable(f"etcd {self.endpoint.address} does not report its version")
            if await _within_timeout(_SILENCE, self.answer) is not None:
                silences = 0
            else:
                silences += 1
                version = await self.client.version(self.endpoint)


class _StartCompacted(Exception):
    def __init__(self, answer: wire.WatchAnswer) -> None:
        super().__init__(answer.cancel_reason)
        self.compacted = answer.compact_revision


async def past_events(client: EtcdClient, key: bytes) -> tuple[int, list[wire.WatchEvent]]:
    """Return the compacted revision and every event of the key, oldest first. The first event may
    be the value that was current at the compacted revision."""
    try:
        return await with_timeout(_TIMEOUT_SECONDS, partial(_past_events, client, key))
    except TimeoutError as error:
        raise Unavailable("etcd did not return the key's history in time") from error


async def _past_events(client: EtcdClient, key: bytes) -> tuple[int, list[wire.WatchEvent]]:
    now = await client.ask(RANGE, wire.range_request(key), wire.read_range)
    newest = now.kvs[0] if now.kvs else None
    compacted, events = await _watch_history(client, key, 1, now)
    while compacted:
        if newest is not None and newest.mod_revision <= compacted:
            return compacted, [wire.WatchEvent(newest, False)]
        try:
            before = await _value_at(client, key, compacted)
            again, events = await _watch_history(client, key, compacted + 1, now)
        except HistoryGone:
            again, events = await _watch_history(client, key, 1, now)
            before = []
        if not again:
            return compacted, [*before, *events]
        compacted = again  # compacted by another client meanwhile
    return 0, events


async def _value_at(client: EtcdClient, key: bytes, revision: int) -> list[wire.WatchEvent]:
    request = wire.range_request(key, revision=revision)
    answer = await client.ask(RANGE, request, wire.read_range)
    return [wire.WatchEvent(kv, False) for kv in answer.kvs]


async def _watch_history(
    client: EtcdClient, key: bytes, start: int, now: wire.RangeAnswer
) -> tuple[int, list[wire.WatchEvent]]:
    """Return the events, and the compacted revision if history does not reach back (else 0)."""
    messages = Messages()
    first = wire.watch_request(key, b"", start)
    endpoint, stream = await client.watch(first, messages.on_message, messages.on_end)
    telling = _HistoryWatch(client, endpoint, stream, messages, [])
    try:
        if now.kvs:
            await telling.up_to(now.kvs[0].mod_revision)
        else:
            await telling.to_the_present(now.revision)
    except _StartCompacted as gone:
        if not gone.compacted:
            raise Unavailable(f"etcd {endpoint.address}: {gone or 'no watch'}") from gone
        return gone.compacted, []
    except RpcError as error:
        raise Unavailable(str(explain(error, endpoint.address))) from error
    finally:
        stream.cancel()
    return 0, telling.found


async def _within_timeout(
    seconds: float, ask: Callable[[], Awaitable[wire.WatchAnswer]]
) -> wire.WatchAnswer | None:
    try:
        return await with_timeout(seconds, ask)
    except TimeoutError:
        return None
