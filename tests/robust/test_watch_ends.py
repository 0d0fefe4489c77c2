"""A watch that ends in the very turn in which an event began to be converted leaves nothing."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import pytest

from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.watch_dispatcher import WatchDispatcher
from instar.server.registry.stored.watchers import WatchChannel
from instar.wire.storage.watchcache.collection import Change


class Converting:
    change_keys = None

    async def _later(self) -> bytes:
        return b"never asked for"

    def __call__(self, change: Change[CacheEntry]) -> Coroutine[Any, Any, bytes]:
        return self._later()

    async def prefetch(self, changes: Sequence[Change[CacheEntry]]) -> None: ...

    def bookmark(self, revision: int) -> bytes:
        return b""


def test_no_coroutine_is_forgotten(recwarn: pytest.WarningsRecorder) -> None:
    async def feed_and_end() -> None:
        channel = WatchChannel(Converting(), WatchDispatcher())
        channel.feed(cast(Change[CacheEntry], None))
        channel.end()
        await asyncio.sleep(0)

    asyncio.run(feed_and_end())
    gc.collect()

    assert [str(each.message) for each in recwarn.list] == []
