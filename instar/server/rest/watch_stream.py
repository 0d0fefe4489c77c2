"""Watch stream: writes the events of a watch to its connection, with bookmarks and a timeout.

``verbs.py`` opens it on a ``WatchStream`` of ``registry/verbs/watch.py``. Which events a watch gets
is decided there; here they are encoded and sent at the client's pace.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Hashable
from math import inf
from time import monotonic
from typing import Any

import orjson

from instar.base.errors import ApiError
from instar.kube.api.encoding.json_text import encode
from instar.kube.protobuf.watch import watch_frame
from instar.server.http.messages import Outlet
from instar.server.registry.resources.columns import TablePrinter
from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.watchers import MAX_PENDING, MAX_TOGETHER
from instar.server.registry.verbs.watch import WatchStream
from instar.server.registry.verbs.watch_events import (
    EventRenderer,
    as_internal,
    error_event,
    plain_event,
)
from instar.server.rest.cbor_documents import cbor_event
from instar.server.rest.negotiate import CBOR, PROTOBUF, ResponseFormat
from instar.server.rest.responses import partial, table, table_row, to_protobuf

BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0
_MIN_TIMEOUT = 1800
_LINES_AT_ONCE = 32
_TURN_SECONDS = 0.005
"""Seconds for which initial events are encoded before other connections get their turn."""
_PACE = 256 << 10
"""Unsent bytes in a connection above which the initial events are held back."""


def watch_renderer(
    form: ResponseFormat, version: VersionServing, include: str
) -> tuple[Hashable, EventRenderer]:
    """The encoder of events, and its key: watches with the same key share the bytes."""
    if form.media == PROTOBUF:
        return ("protobuf", form.transform, form.version), _ProtobufEvents(form)
    if form.media == CBOR:
        return ("cbor", form.transform, form.version), _CborEvents(form)
    if not form.transform:
        return "", EventRenderer()
    if form.transform == "Table":
        return object(), _TableEvents(version, include, form.version)
    return ("partial", form.version), _PartialEvents(form.version)


class _PartialEvents(EventRenderer):
    """Metadata alone."""

    costs_little = False

    def __init__(self, meta_version: str) -> None:
        self._meta_version = meta_version

    def __call__(self, type_: str, view: bytes) -> bytes:
        return plain_event(type_, encode(partial(orjson.loads(view), self._meta_version)))


class _ProtobufEvents(EventRenderer):
    """Protobuf frames: a length and a WatchEvent with a complete message as object."""

    costs_little = False

    def __init__(self, form: ResponseFormat) -> None:
        self._form = form

    def __call__(self, type_: str, view: bytes) -> bytes:
        if self._form.transform and type_ != "ERROR":
            view = encode(partial(orjson.loads(view), self._form.version))
        return watch_frame(type_, to_protobuf(view))


class _CborEvents(EventRenderer):
    """CBOR items, each a WatchEvent whose object is a complete document."""

    costs_little = False

    def __init__(self, form: ResponseFormat) -> None:
        self._form = form

    def __call__(self, type_: str, view: bytes) -> bytes:
        if self._form.transform and type_ != "ERROR":
            view = encode(partial(orjson.loads(view), self._form.version))
        return cbor_event(type_, view)


class _TableEvents(EventRenderer):
    """A Table of one row per event; only the first has column definitions."""

    costs_little = False

    def __init__(self, version: VersionServing, include: str, meta_version: str) -> None:
        self._version = version
        self._include = include
        self._meta_version = meta_version
        self._first = True
        self._detached: TablePrinter | None = None

    async def prepare(self) -> None:
        self._detached = await self._version.printer.detach()

    def __call__(self, type_: str, view: bytes) -> bytes:
        obj: dict[str, Any] = orjson.loads(view)
        include = self._include
        if type_ == "BOOKMARK":
            annotated = bool(obj.get("metadata", {}).get("annotations"))
            include = "Metadata" if annotated and include == "None" else include
        printer, self._detached = self._detached or self._version.printer, None
        row = table_row(obj, printer, include, self._meta_version)
        meta = {"resourceVersion": obj.get("metadata", {}).get("resourceVersion", "")}
        document = table(self._version, [row], meta, self._meta_version)
        if not self._first:
            document["columnDefinitions"] = None
        self._first = False
        return plain_event(type_, encode(document))


class WatchFeed:
    """Pushes a watch into a connection: the initial events at the client's pace, then each event
    at once, until the client disconnects, the timeout passes, or the watcher is ended. It has no
    task, queue or timer of its own, as there may be thousands."""

    __slots__ = (
        "_attached",
        "_backend",
        "_bookmark_at",
        "_continues",
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
        self._continues = False
        """Whether the next initial events are sent in the next turn of the loop."""
        self._held: deque[bytes] | None = None
        """Events for a slow client, as bytes that watchers share, not yet copied into this
        connection's buffer. None while the client keeps up."""
        self._held_bytes = 0
        self._step = -1
        """Its slot in the timer wheel."""
        self._outlet: Outlet | None = None

    def open(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._wait()
        self.resume()

    def _wait(self) -> None:
        when = min(self._end_at, self._bookmark_at, self._last_bookmark_at)
        self._step = self._stream.hub.wheel.put(self, when)

    def due(self) -> None:
        """Called by the timer wheel: end the watch, or send a bookmark."""
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
        """The connection can send more."""
        outlet, opening = self._outlet, self._stream.opening
        if outlet is None:
            return
        if self._attached:
            self._send_held(outlet)
            return
        until = monotonic() + _TURN_SECONDS
        while self._position < len(opening):
            if outlet.backlog() > _PACE:
                return
            if monotonic() > until:
                self._continue_in_next_turn()
                return
            try:
                lines = opening[self._position : self._position + _LINES_AT_ONCE]
            except ApiError as error:  # an object that cannot be read any more
                outlet.send(error_event(as_internal(error)))
                self.over()
                return
            outlet.send(b"".join(lines))
            self._position += _LINES_AT_ONCE
        self._stream.opening = []
        self._attached = True
        if self._stream.finished:
            self.over()
        else:
            self._stream.watcher.attach(self)

    def _continue_in_next_turn(self) -> None:
        if not self._continues:
            self._continues = True
            asyncio.get_running_loop().call_soon(self._continue)

    def _continue(self) -> None:
        self._continues = False
        self.resume()

    def receive(self, data: bytes) -> None:
        """Send an event, or hold it while the client is slow; abort above the limit."""
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
        """Several small events joined into one write."""
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
        """The client has disconnected, or the stream has ended."""
        self._outlet = self._held = None
        self._stream.hub.wheel.take(self, self._step)
        self._stream.close()

    def _tell_progress(self) -> None:
        """Send a bookmark, unless there is no newer revision or events are still unsent."""
        revision, watcher = self._backend.revision, self._stream.watcher
        news = self._attached and revision > max(self._told, watcher.last_revision)
        if news and self._stream.complete():
            self._told = revision
            self.receive(self._stream.bookmark(revision))
