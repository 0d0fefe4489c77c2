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


async def test_a_waiter_resumes_when_its_revision_is_reached() -> None:
    reaching = RevisionWaiters()
    five, three, nine = await waiting(reaching, (5, 10.0), (3, 10.0), (9, 10.0))
    reaching.advance(4)
    assert await three
    assert not five.done()
    reaching.advance(9)
    assert [await five, await nine] == [True, True]


async def test_a_waiter_times_out_when_its_revision_is_not_reached() -> None:
    reaching = RevisionWaiters()
    patient, hasty, hastier = await waiting(reaching, (5, 30.0), (5, 0.04), (6, 0.02))
    assert [await hasty, await hastier] == [False, False]
    reaching.advance(5)
    assert await patient


async def test_a_cancelled_waiter_does_not_disturb_other_waiters() -> None:
    reaching = RevisionWaiters()
    gone, stays = await waiting(reaching, (5, 10.0), (5, 10.0))
    gone.cancel()
    await asyncio.sleep(0)
    reaching.advance(5)
    assert await stays
