"""A copy of one CRD's objects in instar, made and kept current while clients go on writing.

``adopt.py`` runs one for each CRD: first the list, then the watch. ``reconcile`` compares the copy
with a fresh list of metadata, so that what the watch has not brought yet is copied, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

import orjson

from instar.base.errors import ApiError, NotFound, from_status
from instar.base.json_values import Object
from instar.tools.adopter.adoption_client import AdoptionClient
from instar.tools.adopter.moved_group import MovedCrd, key_of, revision_of
from instar.wire.client.client import Client
from instar.wire.client.transport import ConnectionLost

_PAGE = 500
_AT_ONCE = 16
_PAUSE = 0.1


class CopiedObject(NamedTuple):
    """Identity and revision of an object that was copied."""

    uid: str
    revision: int
    """The main cluster's."""


class ShadowCopy:
    """Copies the objects of one CRD to instar and follows their changes by a watch."""

    def __init__(self, client: Client, adoption: AdoptionClient, crd: MovedCrd) -> None:
        self._client, self._adoption, self.crd = client, adoption, crd
        self.index: dict[str, CopiedObject] = {}
        """What was put, by key."""
        self._reached = ""
        self._writing = asyncio.Lock()
        """Held while objects are put, so that an older state never follows a newer one."""
        self._follower: asyncio.Task[None] | None = None

    async def copy(self) -> None:
        """Copy every object page by page, and remove what is there besides."""
        path, seen, self._reached = self.crd.path(self.crd.read_version), set(), ""
        async for page in self._client.pages(path, limit=_PAGE):
            self._reached = self._reached or page["metadata"]["resourceVersion"]
            items = page.get("items") or []
            seen |= {key_of(item) for item in items}
            await self._put(items)
        there = await self._adoption.keys(self.crd.plural)
        await self._remove(set(there) - seen)

    def follow(self) -> None:
        """Start the task that watches the objects and copies their changes."""
        self._follower = asyncio.get_running_loop().create_task(self._follow())

    async def stop(self) -> None:
        """Stop that task."""
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)

    async def reconcile(self) -> int:
        """Copy what differs from a list made now, and return the list's revision."""
        live: dict[str, CopiedObject] = {}
        revision = 0
        path = self.crd.path(self.crd.read_version)
        async for page in self._client.metadata_pages(path, limit=_PAGE):
            revision = revision or int(page["metadata"]["resourceVersion"])
            for item in page.get("items") or ():
                live[key_of(item)] = CopiedObject(item["metadata"]["uid"], revision_of(item))
        async with self._writing:
            late = [key for key, found in live.items() if self.index.get(key) != found]
            gone = set(self.index) - set(live)
        await self._fetch(late)
        await self._remove({*gone, *(set(await self._adoption.keys(self.crd.plural)) - set(live))})
        return revision

    async def _fetch(self, keys: Iterable[str]) -> None:
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(key: str) -> Object | None:
            async with turns:
                try:
                    return await self._client.get(self.crd.path(self.crd.read_version, key))
                except NotFound:
                    return None

        found = await asyncio.gather(*map(one, keys))
        await self._put([obj for obj in found if obj is not None])

    async def _put(self, objects: list[Object]) -> None:
        """Put objects that are newer than what is there."""
        async with self._writing:
            newer = []
            for obj in objects:
                obj.setdefault("apiVersion", f"{self.crd.group}/{self.crd.read_version}")
                obj.setdefault("kind", self.crd.kind)
                known = self.index.get(key_of(obj))
                if known is None or known.revision < revision_of(obj):
                    newer.append(obj)
            await self._adoption.put({"object": obj} for obj in newer)
            for obj in newer:
                self.index[key_of(obj)] = CopiedObject(obj["metadata"]["uid"], revision_of(obj))

    async def _remove(self, keys: Iterable[str]) -> None:
        async with self._writing:
            named = list(keys)
            await self._adoption.put({"gone": self._named(key)} for key in named)
            for key in named:
                self.index.pop(key, None)

    def _named(self, key: str) -> Object:
        namespace, _, name = key.rpartition("/")
        return {"kind": self.crd.kind, "namespace": namespace, "name": name}

    async def _follow(self) -> None:
        """Watch endlessly. What a lost watch has missed is found by ``reconcile``."""
        while True:
            try:
                await self._watch()
            except (ApiError, ConnectionLost):
                self._reached = str(await self._list_revision())
            await asyncio.sleep(_PAUSE)

    async def _list_revision(self) -> int:
        while True:
            try:
                return await self.reconcile()
            except ApiError:
                await asyncio.sleep(1.0)

    async def _watch(self) -> None:
        """Read events, and copy in one request those that came during the last one."""
        query: dict[str, str | int | bool | None] = {
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": self._reached,
        }
        path = self.crd.path(self.crd.read_version)
        waiting: list[Object] = []
        copying: asyncio.Task[None] | None = None
        try:
            async for line in self._client.lines(path, query=query):
                event = orjson.loads(line)
                obj = event["object"]
                if event["type"] == "ERROR":
                    raise from_status(obj, obj.get("code") or 500)
                waiting.append(event)
                if copying is None or copying.done():
                    if copying is not None:
                        copying.result()
                    copying = asyncio.get_running_loop().create_task(self._take(waiting))
        finally:
            if copying is not None:
                await copying

    async def _take(self, waiting: list[Object]) -> None:
        """Copy events until none is left: of each object its last state."""
        while waiting:
            events, waiting[:] = list(waiting), []
            last = {key_of(each["object"]): each for each in events if each["type"] != "BOOKMARK"}
            await self._put([each["object"] for each in last.values() if each["type"] != "DELETED"])
            for each in last.values():
                if each["type"] == "DELETED":
                    await self._drop(each["object"])
            self._reached = events[-1]["object"]["metadata"]["resourceVersion"]

    async def _drop(self, obj: Object) -> None:
        known = self.index.get(key_of(obj))
        if known is not None and known.uid == obj["metadata"]["uid"]:
            await self._remove([key_of(obj)])
