"""Fan-out of one collection's changes: each event is encoded once per kind of watch.

Watchers that want the same thing (version, selector, representation) share a ``Channel``; the
channel turns a change into bytes once, in order, and hands the same bytes to every member. A slow
member is cut off, never waited for. What a change looks like the channel is told (``Frames``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Hashable, Sequence
from typing import Any, Protocol

from instar.registry.stored.backend import Objects
from instar.registry.stored.entry import Entry
from instar.storage.collection import Change

log = logging.getLogger(__name__)
MAX_PENDING = 16 << 20
"""Bytes a watcher may lag behind before it is cut off."""

MAX_BEHIND = 10_000
"""Changes that may wait for a conversion before all watchers who want it are cut off."""
_ERROR = b'{"type":"ERROR"'


class Frames(Protocol):
    """What a change looks like to one kind of watch."""

    def __call__(self, change: Change[Entry]) -> bytes | Coroutine[Any, Any, bytes]:
        """The event's line, empty when it is not seen; awaitable when it needs work."""
        ...

    async def prefetch(self, changes: Sequence[Change[Entry]]) -> None:
        """Do together whatever work these changes are going to need. Never fails."""
        ...


def is_error(frame: bytes) -> bool:
    """Whether this line is the last of its stream."""
    return frame.startswith(_ERROR)


class Receiver(Protocol):
    """Where a watcher's bytes go once its opening has been sent."""

    def receive(self, data: bytes) -> None: ...

    def over(self) -> None: ...


class Watcher:
    """One client's stream. What comes before a receiver is attached waits, within bounds."""

    __slots__ = ("_backlog", "_receiver", "_waiting", "ended", "last_revision")

    def __init__(self, revision: int) -> None:
        self.ended = False
        self.last_revision = revision
        """The newest revision this watcher has been brought to."""
        self._receiver: Receiver | None = None
        self._backlog: list[bytes] = []
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
        self._backlog.append(data)
        self._waiting += len(data)
        if self._waiting > MAX_PENDING:
            self.end()

    def attach(self, receiver: Receiver) -> None:
        """From now on ``receiver`` gets everything, first of all what has been waiting."""
        self._receiver = receiver
        backlog, self._backlog = self._backlog, []
        if backlog:
            receiver.receive(b"".join(backlog))
        if self.ended:
            receiver.over()

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            if self._receiver is not None:
                self._receiver.over()


class Channel:
    """All watchers of one kind. Changes are framed strictly in order, also when framing awaits."""

    def __init__(self, frames: Frames) -> None:
        self.watchers: set[Watcher] = set()
        self.ended = False
        self._frames = frames
        self._queue: deque[Change[Entry]] = deque()
        self._busy: asyncio.Task[None] | None = None
        self._first: Coroutine[Any, Any, bytes] | None = None
        self._lines: list[tuple[int, bytes]] = []
        self._revision = 0
        self._flushing: asyncio.Handle | None = None

    @property
    def busy(self) -> bool:
        return self._busy is not None or bool(self._lines)

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
            self._first = frame
            self._busy = asyncio.get_running_loop().create_task(self._drain(change))

    def end(self) -> None:
        self.flush()
        self.ended = True
        for watcher in tuple(self.watchers):
            watcher.end()
        self.watchers = set()
        self._queue.clear()
        if self._busy is not None and self._busy is not asyncio.current_task():
            self._busy.cancel()
        if self._first is not None:  # the task never came to it
            self._first.close()
            self._first = None

    async def _drain(self, change: Change[Entry]) -> None:
        frame, self._first = self._first, None
        assert frame is not None
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
        """Lines of one turn of the loop (a group commit brings many) go out together."""
        self._revision = revision
        if frame:
            self._lines.append((revision, frame))
        if is_error(frame):
            self.end()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Hand over what has been framed; before anyone new joins, who has seen it already.

        Who joined while changes waited for a conversion has seen some of them already.
        """
        if self._flushing is None and not self._lines:
            return
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        lines, self._lines = self._lines, []
        first = lines[0][0] if lines else 0
        data = _joined(lines)
        for watcher in tuple(self.watchers):
            seen = watcher.last_revision
            unseen = data if seen < first else _joined([line for line in lines if line[0] > seen])
            watcher.push(unseen, self._revision)


def _joined(lines: Sequence[tuple[int, bytes]]) -> bytes:
    return lines[0][1] if len(lines) == 1 else b"".join([line for _, line in lines])


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
        channel.flush()
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
