"""Watch fan-out of one collection: encodes each event once per kind of watch.

``verbs/watch.py`` joins watchers to the ``WatchHub`` of their resource. Watchers with the same
version, selector and representation share a ``WatchChannel``, which encodes a change once (with its
``EventFrames``) and sends the same bytes to each of them when the ``WatchDispatcher`` calls it. A
slow watcher is disconnected. Changes are routed by key, namespace and label, so that a channel sees
only those that may concern it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from typing import Any, Protocol

from instar.base.supervision import report_failure
from instar.server.registry.stored.backend import Objects
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.timer_wheel import TimerWheel
from instar.server.registry.stored.watch_dispatcher import WatchDispatcher
from instar.wire.storage.watchcache.collection import Change

log = logging.getLogger(__name__)
MAX_PENDING = 64 << 20
"""Bytes that a watcher may lag behind before it is disconnected. Watchers of one channel share
them."""

MAX_BEHIND = 10_000
"""Changes that may wait for a conversion before all watchers of the channel are disconnected."""
MAX_TOGETHER = 256 << 10
"""Bytes that are sent together; a longer line goes alone. Beyond that there is no pause, because
large events gain nothing from batching."""
_ERROR = b'{"type":"ERROR"'
_LOOKS_AT_THE_CLOCK = 32
"""Watchers served between two looks at the clock."""
ChangeKey = str | tuple[str, str]
"""By what changes are routed: the key of the object, its namespace (``name/``), or a label that it
has or had."""


class EventFrames(Protocol):
    """Encodes changes for one kind of watch."""

    @property
    def change_keys(self) -> Sequence[ChangeKey] | None:
        """The keys of the changes that may concern this watch; None for all changes."""
        ...

    def __call__(self, change: Change[CacheEntry]) -> bytes | Coroutine[Any, Any, bytes]:
        """Return the event's line, empty if the watch does not see it; a coroutine if it needs a
        conversion."""
        ...

    async def prefetch(self, changes: Sequence[Change[CacheEntry]]) -> None:
        """Convert what these changes will need in one batch. Never fails."""
        ...

    def bookmark(self, revision: int) -> bytes:
        """Return the bookmark line of a revision."""
        ...


def is_error(frame: bytes) -> bool:
    """Return whether this line is an ERROR event, which ends its stream."""
    return frame.startswith(_ERROR)


class Receiver(Protocol):
    """Takes a watcher's bytes once its initial events have been sent."""

    def receive(self, data: bytes) -> None: ...

    def over(self) -> None: ...


class Watcher:
    """One client's stream. Bytes that come before a receiver is attached are queued, within
    bounds."""

    __slots__ = ("_backlog", "_receiver", "_waiting", "channel", "ended", "last_revision")

    def __init__(self, revision: int, channel: WatchChannel) -> None:
        self.channel = channel
        self.ended = False
        self.last_revision = revision
        """This watcher has all events up to this revision."""
        self._receiver: Receiver | None = None
        self._backlog: list[bytes] | None = None
        self._waiting = 0

    def push(self, data: bytes, revision: int) -> None:
        if revision <= self.last_revision or self.ended:
            return
        self.last_revision = revision
        if not data:
            return
        if self._receiver is not None:
            self._receiver.receive(data)
            return
        if self._backlog is None:
            self._backlog = []
        self._backlog.append(data)
        self._waiting += len(data)
        if self._waiting > MAX_PENDING:
            self.end()

    def attach(self, receiver: Receiver) -> None:
        """Send queued bytes and all later ones to ``receiver``."""
        self._receiver = receiver
        backlog, self._backlog = self._backlog, None
        for data in backlog or ():
            receiver.receive(data)
        if self.ended:
            receiver.over()

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            if self._receiver is not None:
                self._receiver.over()


class WatchChannel:
    """All watchers of one kind. Changes are encoded strictly in order, also when encoding
    awaits."""

    def __init__(
        self, frames: EventFrames, dispatcher: WatchDispatcher, kind: Hashable = None
    ) -> None:
        self.watchers: set[Watcher] = set()
        self.ended = False
        self.kind = kind
        self.change_keys = frames.change_keys
        self.bookmark = frames.bookmark
        self._frames = frames
        self._dispatcher = dispatcher
        self._queue: deque[Change[CacheEntry]] = deque()
        self._busy: asyncio.Task[None] | None = None
        self._first: Coroutine[Any, Any, bytes] | None = None
        self._lines: deque[tuple[int, bytes]] = deque()
        self._size = 0
        """Bytes of the waiting lines."""
        self._revision = 0
        self._round: _Round | None = None

    @property
    def busy(self) -> bool:
        return self._busy is not None or bool(self._lines) or self._round is not None

    def feed(self, change: Change[CacheEntry]) -> None:
        if self._busy is not None:
            self._queue.append(change)
            if len(self._queue) > MAX_BEHIND:
                self.end()
            return
        frame = self._frames(change)
        if isinstance(frame, bytes):
            self._deliver(frame, change.revision)
        else:
            self._first = frame
            self._busy = asyncio.get_running_loop().create_task(self._drain(change))

    def end(self) -> None:
        self.flush()
        self.ended = True
        self._dispatcher.forget(self)
        for watcher in tuple(self.watchers):
            watcher.end()
        self.watchers = set()
        self._queue.clear()
        if self._busy is not None and self._busy is not asyncio.current_task():
            self._busy.cancel()
        if self._first is not None:  # the task was cancelled before it started
            self._first.close()
            self._first = None

    async def _drain(self, change: Change[CacheEntry]) -> None:
        frame, self._first = self._first, None
        assert frame is not None
        try:
            self._deliver(await frame, change.revision)
            while self._queue:
                waiting = list(self._queue)
                self._queue.clear()
                await self._deliver_all(waiting)
        except Exception as error:
            report_failure("watches", error, change.suffix)
            self.end()
        finally:
            self._busy = None

    async def _deliver_all(self, changes: Sequence[Change[CacheEntry]]) -> None:
        if len(changes) > 1:
            await self._frames.prefetch(changes)
        for change in changes:
            if self.ended:
                return
            made = self._frames(change)
            self._deliver(made if isinstance(made, bytes) else await made, change.revision)

    def _deliver(self, frame: bytes, revision: int) -> None:
        """Queue a line. Lines of one turn of the loop (a group commit brings many) go out
        together."""
        self._revision = revision
        if frame:
            self._lines.append((revision, frame))
            self._size += len(frame)
        if is_error(frame):
            self.end()
        elif frame:
            self._dispatcher.call(self, at_once=self._size > MAX_TOGETHER)

    def flush(self) -> None:
        """Send all queued lines now."""
        while not self.send_pending(_always):
            pass

    def send_pending(self, in_time: Callable[[], bool]) -> bool:
        while self._round is not None or self._lines:
            if self._round is None:
                self._round = self._next_round()
            if not self._round.go_on(in_time):
                return False
            self._round = None
            if not in_time():
                break
        return not self._lines

    def _next_round(self) -> _Round:
        lines = [self._lines.popleft()]
        size = len(lines[0][1])
        while self._lines and size + len(self._lines[0][1]) <= MAX_TOGETHER:
            lines.append(self._lines.popleft())
            size += len(lines[-1][1])
        self._size -= size
        revision = lines[-1][0] if self._lines else self._revision
        return _Round(lines, revision, tuple(self.watchers))


class _Round:
    """Some lines on their way to the watchers that were there when the round began."""

    __slots__ = ("_data", "_first", "_lines", "_revision", "_watchers")

    def __init__(
        self, lines: list[tuple[int, bytes]], revision: int, watchers: Sequence[Watcher]
    ) -> None:
        self._lines = lines
        self._first = lines[0][0]
        self._data = _joined(lines)
        self._revision = revision
        self._watchers: Iterator[Watcher] = iter(watchers)

    def go_on(self, in_time: Callable[[], bool]) -> bool:
        """Send to the next watchers. Return whether all have been served."""
        data, revision, first = self._data, self._revision, self._first
        served = 0
        for watcher in self._watchers:
            try:
                if watcher.last_revision < first:
                    watcher.push(data, revision)
                else:  # it joined after some of these events
                    watcher.push(self._unseen(watcher.last_revision), revision)
            except Exception as error:  # the other watchers go on
                report_failure("watches", error)
                watcher.end()
            served += 1
            if served == _LOOKS_AT_THE_CLOCK:
                if not in_time():
                    return False
                served = 0
        return True

    def _unseen(self, seen: int) -> bytes:
        return _joined([line for line in self._lines if line[0] > seen])


def _always() -> bool:
    return True


def _joined(lines: Sequence[tuple[int, bytes]]) -> bytes:
    return lines[0][1] if len(lines) == 1 else b"".join([line for _, line in lines])


class WatchHub:
    """The channels of one collection."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._channels: dict[Hashable, WatchChannel] = {}
        self._dispatcher = WatchDispatcher()
        self.wheel = TimerWheel()
        """For the timeouts of the streams."""
        self._any: dict[WatchChannel, None] = {}
        """Channels that every change may concern; ``_by_key`` has the others."""
        self._by_key: dict[ChangeKey, dict[WatchChannel, None]] = {}
        objects.listeners.append(self._changed)

    def join(self, kind: Hashable, frames: EventFrames, revision: int) -> Watcher:
        channel = self._channels.get(kind)
        if channel is None or channel.ended:
            if channel is not None:
                self._forget(channel)
            channel = WatchChannel(frames, self._dispatcher, kind)
            self._channels[kind] = channel
            self._listen(channel)
        watcher = Watcher(revision, channel)
        channel.watchers.add(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        channel = watcher.channel
        channel.watchers.discard(watcher)
        if not channel.watchers and self._channels.get(channel.kind) is channel:
            channel.end()
            self._forget(channel)
            del self._channels[channel.kind]

    def end_all(self) -> None:
        """End every stream cleanly; clients list and watch again."""
        channels, self._channels = self._channels, {}
        self._any, self._by_key = {}, {}
        for channel in channels.values():
            channel.end()

    def close(self) -> None:
        self.end_all()
        self._objects.listeners.remove(self._changed)

    @property
    def watching(self) -> int:
        return sum(len(channel.watchers) for channel in self._channels.values())

    def _listen(self, channel: WatchChannel) -> None:
        if channel.change_keys is None:
            self._any[channel] = None
            return
        for key in channel.change_keys:
            self._by_key.setdefault(key, {})[channel] = None

    def _forget(self, channel: WatchChannel) -> None:
        self._any.pop(channel, None)
        for key in channel.change_keys or ():
            listening = self._by_key.get(key, {})
            listening.pop(channel, None)
            if not listening:
                self._by_key.pop(key, None)

    def _changed(self, change: Change[CacheEntry]) -> None:
        concerned = self._any
        if self._by_key:
            concerned = dict(concerned)
            for key in _change_keys(change):
                concerned.update(self._by_key.get(key, ()))
        for channel in tuple(concerned):
            if not channel.ended:
                try:
                    channel.feed(change)
                except Exception as error:  # its watches end; the others go on
                    report_failure("watches", error, change.suffix)
                    channel.end()


def _change_keys(change: Change[CacheEntry]) -> Iterator[ChangeKey]:
    """Yield every key by which a channel may wait for this change."""
    yield change.suffix
    namespace, slash, _ = change.suffix.partition("/")
    if slash:
        yield namespace + slash
    for entry in (change.new, change.old):
        if entry is not None:
            yield from entry.labels.items()
