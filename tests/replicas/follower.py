"""A watcher that never gives up: when its stream ends it goes on at the next replica."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from tests.replicas.client import Client, Lost, Refused


class Seen(NamedTuple):
    """One event; ``last`` is None for a deletion."""

    name: str
    last: str | None
    revision: int
    tokens: tuple[str, ...]
    number: int


class Follower:
    def __init__(self, client: Client, collection: str, revision: str, at: int) -> None:
        self.seen: list[Seen] = []
        self.streams = 0
        self._client, self._collection, self._at = client, collection, at
        self._revision = int(revision)
        self._changed = asyncio.Event()
        self.task = asyncio.create_task(self._follow())

    async def reached(self, revision: int) -> None:
        while self._revision < revision:
            self._changed.clear()
            change = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait([change, self.task], return_when=asyncio.FIRST_COMPLETED)
            change.cancel()
            if self.task.done():
                self.task.result()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            self.streams += 1
            try:
                stream = self._client.watch(self._at, self._collection, str(self._revision))
                async for event in stream:
                    self._take(event)
            except (Lost, Refused):
                await asyncio.sleep(0.05)
            self._at += 1

    def _take(self, event: dict[str, Any]) -> None:
        obj = event["object"]
        revision = int(obj["metadata"]["resourceVersion"])
        if event["type"] != "BOOKMARK":
            assert revision > self._revision, f"an event came twice or out of order: {event}"
            spec, deleted = obj["spec"], event["type"] == "DELETED"
            self.seen.append(
                Seen(
                    obj["metadata"]["name"],
                    None if deleted else spec["last"],
                    revision,
                    tuple(spec.get("tokens") or ()),
                    spec.get("count", 0),
                )
            )
        assert revision >= self._revision
        self._revision = revision
        self._changed.set()
