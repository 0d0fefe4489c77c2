"""The lines of a watch: what opens it, live events, bookmarks, and its end in time."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Hashable
from math import inf
from typing import Any

import orjson

from instar.kube.api.encoding.json_text import encode
from instar.kube.protobuf.watch import watch_frame
from instar.server.http.messages import Outlet
from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.watchers import MAX_PENDING, MAX_TOGETHER
from instar.server.registry.verbs.watch import Render, WatchStream, plain_event
from instar.server.rest.negotiate import PROTOBUF, ResponseFormat
from instar.server.rest.responses import partial, table, table_row, to_protobuf

BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0
_MIN_TIMEOUT = 1800
_LINES_AT_ONCE = 100
_PACE = 256 << 10
"""Bytes of an opening that may wait in a connection before the rest is held back."""


def watch_renderer(
    form: ResponseFormat, version: VersionServing, include: str
) -> tuple[Hashable, Render]:
    """How each event is written; watches of the same kind share the bytes."""
    if form.media == PROTOBUF:
        return ("protobuf", form.transform, form.version), _ProtobufEvents(form)
    if not form.transform:
        return "", plain_event
    if form.transform == "Table":
        return object(), _TableEvents(version, include, form.version)
    return ("partial", form.version), lambda type_, view: plain_event(
        type_, encode(partial(orjson.loads(view), form.version))
    )


class _ProtobufEvents:
    """Frames: a length and an event, whose object is a whole message."""

    def __init__(self, form: ResponseFormat) -> None:
        self._form = form

    def __call__(self, type_: str, view: bytes) -> bytes:
        if self._form.transform and type_ != "ERROR":
            view = encode(partial(orjson.loads(view), self._form.version))
        return watch_frame(type_, to_protobuf(view))


class _TableEvents:
    """One row a line; only the first line says what the columns are."""

    def __init__(self, version: VersionServing, include: str, meta_version: str) -> None:
        self._version = version
        self._include = include
        self._meta_version = meta_version
        self._first = True

    def __call__(self, type_: str, view: bytes) -> bytes:
        obj: dict[str, Any] = orjson.loads(view)
        include = self._include
        if type_ == "BOOKMARK":
            annotated = bool(obj.get("metadata", {}).get("annotations"))
            include = "Metadata" if annotated and include == "None" else include
        row = table_row(obj, self._version.printer, include, self._meta_version)
        meta = {"resourceVersion": obj.get("metadata", {}).get("resourceVersion", "")}
        document = table(self._version, [row], meta, self._meta_version)
        if not self._first:
            document["columnDefinitions"] = None
        self._first = False
        return plain_event(type_, encode(document))


class WatchFeed:
    """Pushes a watch into a connection: what opens it at the client's pace, then each event at
    once, until the client leaves, the time is up, or the watcher is ended. No task, no queue, and
    no timer of its own: there may be thousands."""

    __slots__ = (
        "_attached",
        "_backend",
        "_bookmark_at",
        "_end_at",
        "_held",
        "_held_bytes",
        "_last_bookmark_at",
        "_outlet",
        "_position",
        "_step",
        "_stream",
        "_told",
    )

    def __init__(
        self, backend: Backend, stream: WatchStream, *, bookmarks: bool, timeout_seconds: int
    ) -> None:
        self._backend = backend
        self._stream = stream
        seconds = timeout_seconds if timeout_seconds > 0 else _MIN_TIMEOUT * (1 + random.random())
        now = asyncio.get_running_loop().time()
        self._end_at = now + seconds
        self._bookmark_at = now + BOOKMARK_SECONDS if bookmarks else inf
        long = bookmarks and seconds > 2 * _LAST_BOOKMARK_SECONDS
        self._last_bookmark_at = self._end_at - _LAST_BOOKMARK_SECONDS if long else inf
        self._position = 0
        self._told = 0
        self._attached = False
        self._held: deque[bytes] | None = None
        """Events for a client that does not keep up: the bytes all watchers of a kind share, not
        yet made this connection's own. None while it does."""
        self._held_bytes = 0
        self._step = -1
        """Where it has been put on the wheel."""
        self._outlet: Outlet | None = None

    def open(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._wait()
        self.resume()

    def _wait(self) -> None:
        when = min(self._end_at, self._bookmark_at, self._last_bookmark_at)
        self._step = self._stream.hub.wheel.put(self, when)

    def due(self) -> None:
        if self._outlet is None:
            return
        now = asyncio.get_running_loop().time()
        if now >= self._end_at:
            self.over()
            return
        if now >= self._bookmark_at:
            self._bookmark_at = now + BOOKMARK_SECONDS
            self._tell_progress()
        if now >= self._last_bookmark_at:
            self._last_bookmark_at = inf
            self._tell_progress()
        self._wait()

    def resume(self) -> None:
        """The connection can take more."""
        outlet, opening = self._outlet, self._stream.opening
        if outlet is None:
            return
        if self._attached:
            self._send_held(outlet)
            return
        while self._position < len(opening):
            if outlet.backlog() > _PACE:
                return
            outlet.send(b"".join(opening[self._position : self._position + _LINES_AT_ONCE]))
            self._position += _LINES_AT_ONCE
        self._stream.opening = []
        self._attached = True
        if self._stream.finished:
            self.over()
        else:
            self._stream.watcher.attach(self)

    def receive(self, data: bytes) -> None:
        outlet, held = self._outlet, self._held
        if outlet is None:
            return
        if held is None:
            self._held = None if outlet.send(data) else deque()
            return
        held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes + outlet.backlog() > MAX_PENDING:
            outlet.abort()

    def _send_held(self, outlet: Outlet) -> None:
        while self._held:
            if not outlet.send(self._next_held(self._held)):
                return
        self._held = None

    def _next_held(self, held: deque[bytes]) -> bytes:
        """Some of it together: the small ones cost one write."""
        data = [held.popleft()]
        size = len(data[0])
        while held and size + len(held[0]) <= MAX_TOGETHER:
            data.append(held.popleft())
            size += len(data[-1])
        self._held_bytes -= size
        return data[0] if len(data) == 1 else b"".join(data)

    def over(self) -> None:
        outlet, self._outlet = self._outlet, None
        while outlet is not None and self._held:
            outlet.send(self._next_held(self._held))
        self.close()
        if outlet is not None:
            outlet.finish()

    def close(self) -> None:
        """The client has gone, or everything was said."""
        self._outlet = self._held = None
        self._stream.hub.wheel.take(self, self._step)
        self._stream.close()

    def _tell_progress(self) -> None:
        """A bookmark, unless there is nothing new to say or something is still on its way."""
        revision, watcher = self._backend.revision, self._stream.watcher
        news = self._attached and revision > max(self._told, watcher.last_revision)
        if news and self._stream.complete():
            self._told = revision
            self.receive(self._stream.bookmark(revision))
