"""Lists a resource and then watches it, for tools that follow objects of a cluster.

``tools/nodes/simulation.py`` and ``server/cluster_home`` call it. ``follow`` yields the whole list
first and every change after it; when the server ends the watch, it resumes from the last revision,
and when that is too old (410) or the connection is lost, it lists again. The caller then gets a
``CollectionState`` and compares it with the previous objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import NamedTuple

import orjson

from instar.base.errors import ApiError, Expired, from_status
from instar.base.json_values import Object
from instar.wire.client.client import Client
from instar.wire.client.transport import ConnectionLost

_PAGE = 500
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 15.0
Failed = Callable[[Exception], None]


class CollectionState(NamedTuple):
    """All objects at one revision."""

    items: list[Object]
    revision: str


class CollectionChange(NamedTuple):
    """One event of the watch: ``ADDED``, ``MODIFIED`` or ``DELETED``."""

    type: str
    object: Object


async def follow(
    client: Client,
    path: str,
    *,
    failed: Failed | None = None,
    silence: float | None = None,
    **query: str | int | bool | None,
) -> AsyncIterator[CollectionState | CollectionChange]:
    """Yield the list and its changes, endlessly. A failed first list raises ``ApiError``; later
    failures are retried with growing pauses and reported to ``failed``. A watch that brings neither
    an event nor a bookmark for ``silence`` seconds counts as lost."""
    listed = await list_all(client, path, **query)
    failures = 0
    while True:
        yield listed
        revision = listed.revision
        try:
            while True:
                async for event in _watch(client, path, revision, query, silence):
                    failures = 0
                    revision = event.object["metadata"]["resourceVersion"]
                    if event.type != "BOOKMARK":
                        yield event
        except (ApiError, ConnectionLost) as error:
            if failed is not None and not isinstance(error, Expired):
                failed(error)
            listed, failures = await _relist(client, path, query, failures, failed)


async def list_all(client: Client, path: str, **query: str | int | bool | None) -> CollectionState:
    """Return every page's objects, and the revision to watch from."""
    items: list[Object] = []
    revision = ""
    async for page in client.pages(path, limit=_PAGE, **query):
        items += page.get("items") or []
        revision = revision or (page.get("metadata") or {}).get("resourceVersion") or ""
    return CollectionState(items, revision)


async def _relist(
    client: Client,
    path: str,
    query: dict[str, str | int | bool | None],
    failures: int,
    failed: Failed | None,
) -> tuple[CollectionState, int]:
    while True:
        failures += 1
        await asyncio.sleep(min(_FIRST_PAUSE * 2.0 ** (failures - 1), _LONGEST_PAUSE))
        try:
            return await list_all(client, path, **query), failures
        except ApiError as error:
            if failed is not None:
                failed(error)


async def _in_time(lines: AsyncGenerator[bytes], silence: float | None) -> AsyncIterator[bytes]:
    """Yield the lines. Raises ``ConnectionLost`` if the next one takes too long: a server that
    hangs keeps its connections open."""
    async with aclosing(lines):
        while True:
            try:
                async with asyncio.timeout(silence):
                    line = await anext(lines, None)
            except TimeoutError:
                raise ConnectionLost(f"no event for {silence:g} s") from None
            if line is None:
                return
            yield line


async def _watch(
    client: Client,
    path: str,
    revision: str,
    query: dict[str, str | int | bool | None],
    silence: float | None,
) -> AsyncIterator[CollectionChange]:
    """Yield the events of one watch. Raises ``ApiError`` if the server rejects the watch or ends it
    with a Status, ``ConnectionLost`` if the connection breaks."""
    asked = {**query, "watch": True, "allowWatchBookmarks": True, "resourceVersion": revision}
    async for line in _in_time(client.lines(path, query=asked), silence):
        event = orjson.loads(line)
        if event["type"] == "ERROR":
            raise from_status(event["object"], event["object"].get("code") or Expired.code)
        yield CollectionChange(event["type"], event["object"])
