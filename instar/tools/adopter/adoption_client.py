"""Client of instar's adoption API (``adopt.instar.dev``) for one group. Every step calls it.

Requests go through the main cluster's aggregation layer, with the caller's own rights.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from urllib.parse import quote

import orjson

from instar.base.json_values import Object
from instar.kube.api.adoption import MOST_OBJECTS, group_path
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.wire.client.client import Client

_MOST_BYTES = 2 << 20
"""Bytes of one request; the server takes 3 MiB."""


class AdoptionClient:
    """Calls instar's adoption API for one group. A call that fails for a passing reason is
    repeated, because every action may be repeated."""

    def __init__(self, client: Client, group: str, patience: RetryPolicy) -> None:
        self._client, self._group, self._patience = client, group, patience

    async def document(self) -> Object:
        """Return the state of the group in instar, its resources, and what changed there since."""
        return await self._get("")

    async def revision(self) -> int:
        """Return instar's revision now."""
        return int((await self._get("revision"))["revision"])

    async def begin(self, above: int, *, discard: bool) -> None:
        """Start a copy: instar accepts objects, and its revisions are above ``above``."""
        await self._post("begin", {"above": above, "discard": discard})

    async def put(self, changes: Iterable[Object]) -> int:
        """Put or remove objects in requests of bounded size; return how many were written."""
        waiting: list[Object] = []
        written = size = 0
        for change in changes:
            length = len(orjson.dumps(change))
            if waiting and (size + length > _MOST_BYTES or len(waiting) == MOST_OBJECTS):
                written += await self._put(waiting)
                waiting, size = [], 0
            waiting.append(change)
            size += length
        return written + (await self._put(waiting) if waiting else 0)

    async def set_floor(self, above: int) -> int:
        """Begin instar's history above the revision ``above``; return where it begins."""
        return int((await self._post("floor", {"above": above}))["floor"])

    async def finish(self) -> None:
        """End the copy: from now on clients write, and instar accepts no copied objects."""
        await self._post("finish", {})

    async def give_back(self) -> None:
        """Record that the main cluster has all objects again."""
        await self._post("return", {})

    async def keep_alone(self) -> None:
        """Record that the main cluster's etcd has no objects any more."""
        await self._post("alone", {})

    async def copied_uids(self, plural: str) -> dict[str, str]:
        """Return the uid of every object that came from the main cluster, by its key."""
        return dict((await self._get("copied", resource=plural))["uids"])

    async def forget(self) -> int:
        """Delete the copied objects; return their number."""
        return int((await self._post("forget", {}))["removed"])

    async def keys(self, plural: str) -> dict[str, int]:
        """Return the revision of every object by key (namespace/name)."""
        return dict((await self._get("keys", resource=plural))["keys"])

    async def created_uids(self) -> frozenset[str]:
        """Return the uids of the objects that clients created in instar."""
        return frozenset((await self._get("created"))["uids"])

    async def objects(
        self, plural: str, version: str = "", since: int = 0
    ) -> AsyncIterator[list[Object]]:
        """Yield objects page by page, at a version or as they are stored."""
        after, more = "", True
        while more:
            page = await self._get(
                "objects", resource=plural, version=version, after=after, since=since
            )
            yield page["items"]
            after = page["after"]
            more = bool(after)

    async def object(self, plural: str, version: str, key: str) -> Object:
        """Raises ``NotFound``."""
        return await self._get("objects", resource=plural, version=version, key=key)

    async def _put(self, changes: list[Object]) -> int:
        return int((await self._post("objects", {"changes": changes}))["written"])

    async def _get(self, action: str, **query: str | int | None) -> Object:
        path = group_path(self._group, quote(action))
        return await call_with_retries(lambda: self._client.get(path, **query), self._patience)

    async def _post(self, action: str, body: Object) -> Object:
        path = group_path(self._group, action)
        return await call_with_retries(lambda: self._client.post(path, body), self._patience)
