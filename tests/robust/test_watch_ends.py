"""A watch that ends in the very turn in which an event began to be converted leaves nothing."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import pytest

from instar.registry.stored.courier import Courier
from instar.registry.stored.entry import Entry
from instar.registry.stored.watchers import Channel
from instar.storage.collection import Change


class Converting:
    signs = None

    async def _later(self) -> bytes:
        return b"never asked for"

    def __call__(self, change: Change[Entry]) -> Coroutine[Any, Any, bytes]:
        return self._later()

    async def prefetch(self, changes: Sequence[Change[Entry]]) -> None: ...

    def bookmark(self, revision: int) -> bytes:
        return b""


def test_no_coroutine_is_forgotten(recwarn: pytest.WarningsRecorder) -> None:
    async def feed_and_end() -> None:
        channel = Channel(Converting(), Courier())
        channel.feed(cast(Change[Entry], None))
        channel.end()
        await asyncio.sleep(0)

    asyncio.run(feed_and_end())
    gc.collect()

    assert [str(each.message) for each in recwarn.list] == []
