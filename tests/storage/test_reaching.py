from __future__ import annotations

import asyncio

import pytest

from instar.wire.storage.watchcache.revision_wait import RevisionWaiters

pytestmark = pytest.mark.anyio


async def waiting(
    reaching: RevisionWaiters, *wanted: tuple[int, float]
) -> list[asyncio.Task[bool]]:
    tasks = [asyncio.ensure_future(reaching.wait(*each)) for each in wanted]
    await asyncio.sleep(0)
    return tasks


async def test_who_waits_is_told_when_his_revision_is_there_and_not_before() -> None:
    reaching = RevisionWaiters()
    five, three, nine = await waiting(reaching, (5, 10.0), (3, 10.0), (9, 10.0))
    reaching.advance(4)
    assert await three
    assert not five.done()
    reaching.advance(9)
    assert [await five, await nine] == [True, True]


async def test_who_waits_in_vain_is_told_when_his_time_is_over() -> None:
    reaching = RevisionWaiters()
    patient, hasty, hastier = await waiting(reaching, (5, 30.0), (5, 0.04), (6, 0.02))
    assert [await hasty, await hastier] == [False, False]
    reaching.advance(5)
    assert await patient


async def test_who_gives_up_hurts_nobody() -> None:
    reaching = RevisionWaiters()
    gone, stays = await waiting(reaching, (5, 10.0), (5, 10.0))
    gone.cancel()
    await asyncio.sleep(0)
    reaching.advance(5)
    assert await stays
