"""Fan-out of one collection's changes: each event is encoded once per kind of watch.

Watchers that want the same thing (version, selector, representation) share a ``Channel``; the
channel turns a change into bytes once, in order, and hands the same bytes to every member. A slow
member is cut off, never waited for. What a change looks like the channel is told (``Frames``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Hashable, Sequence
from typing import Protocol

from instar.registry.backend import Objects
from instar.registry.entry import Entry
from instar.storage.cache import Change

log = logging.getLogger(__name__)
MAX_PENDING = 16 << 20
"""Bytes a watcher may lag behind before it is cut off."""

MAX_BEHIND = 10_000
"""Changes that may wait for a conversion before all watchers who want it are cut off."""
_ERROR = b'{"type":"ERROR"'


class Frames(Protocol):
    """What a change looks like to one kind of watch."""

    def __call__(self, change: Change[Entry]) -> bytes | Awaitable[bytes]:
        """The event's line, empty when it is not seen; awaitable when it needs work."""
        ...

    async def prefetch(self, changes: Sequence[Change[Entry]]) -> None:
        """Do together whatever work these changes are going to need. Never fails."""
        ...


def is_error(frame: bytes) -> bool:
    """Whether this line is the last of its stream."""
    return frame.startswith(_ERROR)


class Watcher:
    """One client's stream: bytes to send, and whether it is over."""

    __slots__ = ("_chunks", "_pending", "_wakeup", "ended", "last_revision")

    def __init__(self, revision: int) -> None:
        self.ended = False
        self.last_revision = revision
        """The newest revision this watcher has been brought to."""
        self._chunks: list[bytes] = []
        self._pending = 0
        self._wakeup: asyncio.Future[None] | None = None

    def push(self, frame: bytes, revision: int) -> None:
        if revision <= self.last_revision or self.ended:
            return
        self.last_revision = revision
        if not frame:
            return
        self._chunks.append(frame)
        self._pending += len(frame)
        if self._pending > MAX_PENDING:
            self.end()
        self._wake()

    def end(self) -> None:
        self.ended = True
        self._wake()

    @property
    def pending(self) -> bool:
        return bool(self._chunks)

    async def take(self, within: float) -> bytes:
        """All bytes waiting; empty after ``within`` seconds of silence or at the end."""
        if not self._chunks and not self.ended:
            loop = asyncio.get_running_loop()
            self._wakeup = loop.create_future()
            timer = loop.call_later(within, self._wake)
            try:
                await self._wakeup
            finally:
                timer.cancel()
                self._wakeup = None
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._pending = 0
        return data

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)


class Channel:
    """All watchers of one kind. Changes are framed strictly in order, also when framing awaits."""

    def __init__(self, frames: Frames) -> None:
        self.watchers: set[Watcher] = set()
        self.ended = False
        self._frames = frames
        self._queue: deque[Change[Entry]] = deque()
        self._busy: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return self._busy is not None

    def feed(self, change: Change[Entry]) -> None:
        if self._busy is not None:
            self._queue.append(change)
            if len(self._queue) > MAX_BEHIND:
                self.end()
            return
        frame = self._frames(change)
        if isinstance(frame, bytes):
            self._deliver(frame, change.revision)
        else:
            self._busy = asyncio.get_running_loop().create_task(self._drain(change, frame))

    def end(self) -> None:
        self.ended = True
        for watcher in self.watchers:
            watcher.end()
        self.watchers = set()
        self._queue.clear()
        if self._busy is not None and self._busy is not asyncio.current_task():
            self._busy.cancel()

    async def _drain(self, change: Change[Entry], frame: Awaitable[bytes]) -> None:
        try:
            self._deliver(await frame, change.revision)
            while self._queue:
                waiting = list(self._queue)
                self._queue.clear()
                await self._deliver_all(waiting)
        except Exception:
            log.exception("a watch had to be ended")
            self.end()
        finally:
            self._busy = None

    async def _deliver_all(self, changes: Sequence[Change[Entry]]) -> None:
        if len(changes) > 1:
            await self._frames.prefetch(changes)
        for change in changes:
            if self.ended:
                return
            made = self._frames(change)
            self._deliver(made if isinstance(made, bytes) else await made, change.revision)

    def _deliver(self, frame: bytes, revision: int) -> None:
        for watcher in self.watchers:
            watcher.push(frame, revision)
        if is_error(frame):
            self.end()


class WatchHub:
    """The channels of one collection."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._channels: dict[Hashable, Channel] = {}
        objects.listeners.append(self._changed)

    def join(self, kind: Hashable, frames: Frames, revision: int) -> Watcher:
        channel = self._channels.get(kind)
        if channel is None or channel.ended:
            channel = Channel(frames)
            self._channels[kind] = channel
        watcher = Watcher(revision)
        channel.watchers.add(watcher)
        return watcher

    def leave(self, kind: Hashable, watcher: Watcher) -> None:
        channel = self._channels.get(kind)
        if channel is not None:
            channel.watchers.discard(watcher)
            if not channel.watchers:
                channel.end()
                del self._channels[kind]

    def busy(self, kind: Hashable) -> bool:
        """Whether changes of this kind are on their way to its watchers."""
        channel = self._channels.get(kind)
        return channel is not None and channel.busy

    def end_all(self) -> None:
        """End every stream cleanly; clients list and watch again."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.end()

    def close(self) -> None:
        self.end_all()
        self._objects.listeners.remove(self._changed)

    @property
    def watching(self) -> int:
        return sum(len(channel.watchers) for channel in self._channels.values())

    def _changed(self, change: Change[Entry]) -> None:
        for channel in tuple(self._channels.values()):
            if not channel.ended:
                channel.feed(change)
