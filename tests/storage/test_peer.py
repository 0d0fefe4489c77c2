"""A store lent to another process, and what is left of it when the lender hangs up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from instar.errors import ServiceUnavailable
from instar.registry.backend import Backend
from instar.storage.memory import MemoryStore
from instar.storage.peer import PeerStore
from instar.storage.peer_server import StoreServer
from instar.storage.store import Unavailable


def test_whoever_borrows_learns_that_the_lender_has_hung_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        lender = StoreServer(MemoryStore(), tmp_path)
        await lender.start()
        lent = await PeerStore.connect(tmp_path)
        assert await lent.get("nothing") is None
        waiting = asyncio.create_task(lent.lost())

        await lender.close()

        with pytest.raises(Unavailable, match="gone"):
            await asyncio.wait_for(waiting, 30)
        await lent.close()

    asyncio.run(scenario())


def test_a_request_is_told_to_come_back_when_the_lender_has_hung_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        lender = StoreServer(MemoryStore(), tmp_path)
        await lender.start()
        lent = await PeerStore.connect(tmp_path)
        assert await lent.get("nothing") is None
        backend = Backend(lent)
        waiting = asyncio.create_task(lent.lost())
        await lender.close()
        await asyncio.wait([waiting], timeout=30)

        with pytest.raises(ServiceUnavailable, match="the storage is unavailable"):
            await backend.caught_up()
        waiting.exception()
        await backend.stop()

    asyncio.run(scenario())
