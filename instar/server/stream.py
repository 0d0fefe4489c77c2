"""The lines of a watch: what opens it, live events, bookmarks, and its end in time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Hashable
from time import monotonic
from typing import Any

import orjson

from instar.api.jsontext import encode
from instar.registry.backend import Backend
from instar.registry.serving import VersionServing
from instar.registry.watch import Render, Stream, plain_event
from instar.server.negotiate import Form
from instar.server.responses import partial, table, table_row

BOOKMARK_SECONDS = 60.0
_MIN_TIMEOUT = 1800


def watch_renderer(form: Form, version: VersionServing, include: str) -> tuple[Hashable, Render]:
    """How each event is written; watches of the same kind share the bytes."""
    if not form.transform:
        return "", plain_event
    if form.transform == "Table":
        return object(), _TableEvents(version, include, form.version)
    return ("partial", form.version), lambda type_, view: plain_event(
        type_, encode(partial(orjson.loads(view), form.version))
    )


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
        row = table_row(obj, self._version, include, self._meta_version)
        meta = {"resourceVersion": obj.get("metadata", {}).get("resourceVersion", "")}
        document = table(self._version, [row], meta, self._meta_version)
        if not self._first:
            document["columnDefinitions"] = None
        self._first = False
        return plain_event(type_, encode(document))


async def watch_lines(
    backend: Backend, stream: Stream, bookmarks: bool, timeout_seconds: int
) -> AsyncIterator[bytes]:
    """Until the client leaves, the time is up, or the watcher is ended."""
    timeout = timeout_seconds if timeout_seconds > 0 else _MIN_TIMEOUT * (1 + random.random())
    deadline = monotonic() + timeout
    next_bookmark = monotonic() + BOOKMARK_SECONDS
    told = 0
    watcher = stream.watcher
    try:
        for start in range(0, len(stream.opening), 500):
            yield b"".join(stream.opening[start : start + 500])
        stream.opening = []
        while not stream.finished:
            now = monotonic()
            if now >= deadline:
                return
            wait = min(deadline, next_bookmark) - now if bookmarks else deadline - now
            data = await watcher.take(max(wait, 0.001))
            if data:
                yield data
            if watcher.ended:
                return
            if bookmarks and monotonic() >= next_bookmark:
                next_bookmark = monotonic() + BOOKMARK_SECONDS
                if backend.revision > max(told, watcher.last_revision) and stream.complete():
                    told = backend.revision
                    yield stream.bookmark(told)
    finally:
        stream.close()
