from __future__ import annotations

import asyncio

import pytest

from instar.wire.storage.compactor import Compactor, HistoryLimits
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Compacted, Unavailable, Write

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_history_younger_than_the_limit_stays() -> None:
    clock, store = Clock(), MemoryStore()
    compactor = Compactor(store, keep=300, clock=clock)
    first = await store.commit(Write("a", b"1", 0))
    await compactor.tick()
    clock.now += 299
    await store.commit(Write("a", b"2", first))
    await compactor.tick()
    assert [r.value for r in (await store.range("", revision=first)).records] == [b"1"]


async def test_history_older_than_the_limit_is_compacted_and_logged() -> None:
    clock, store, told = Clock(), MemoryStore(), list[int]()
    compactor = Compactor(store, keep=300, clock=clock, compacted=told.append)
    first = await store.commit(Write("a", b"1", 0))
    await compactor.tick()
    second = await store.commit(Write("a", b"2", first))
    clock.now += 100
    await compactor.tick()
    third = await store.commit(Write("a", b"3", second))
    clock.now += 300
    assert await compactor.tick() == second
    assert told == [second]
    with pytest.raises(Compacted):
        await store.range("", revision=first)
    assert [r.value for r in (await store.range("", revision=second)).records] == [b"2"]
    assert third == await store.barrier()


async def test_an_idle_store_is_compacted_once() -> None:
    clock, store, told = Clock(), MemoryStore(), list[int]()
    compactor = Compactor(store, keep=300, clock=clock, compacted=told.append)
    revision = await store.commit(Write("a", b"1", 0))
    for _ in range(20):
        await compactor.tick()
        clock.now += 100
    assert told == [revision]


async def test_a_store_that_cannot_answer_does_not_stop_the_loop() -> None:
    class Shaky(MemoryStore):
        asked = 0
        answered = asyncio.Event()

        async def barrier(self) -> int:
            self.asked += 1
            if self.asked == 1:
                raise Unavailable("later")
            self.answered.set()
            return await super().barrier()

    store = Shaky()
    task = asyncio.ensure_future(Compactor(store, keep=0.01).run())
    await asyncio.wait_for(store.answered.wait(), 5)
    task.cancel()
    assert store.asked >= 2


async def test_history_that_grows_too_large_goes_early() -> None:
    clock, store = Clock(), MemoryStore()
    compactor = Compactor(store, keep=86400, most=HistoryLimits(bytes=250, writes=100), clock=clock)
    revision = 0
    revisions = [revision := await store.commit(Write("a", b"x" * 100, revision)) for _ in range(6)]

    done = await compactor.tick()

    assert done == revisions[3]  # two values of a hundred bytes are left of the five
    past = await store.past("a")
    assert [event.revision for event in past.events] == revisions[3:]


async def test_history_of_too_many_writes_goes_early() -> None:
    clock, store = Clock(), MemoryStore()
    compactor = Compactor(
        store, keep=86400, most=HistoryLimits(bytes=1 << 30, writes=3), clock=clock
    )
    revision = 0
    for _ in range(10):
        revision = await store.commit(Write("a", b"x", revision))
    await compactor.tick()
    for _ in range(4):
        revision = await store.commit(Write("a", b"x", revision))
    await compactor.tick()

    assert len((await store.past("a")).events) == 4


async def test_caches_forget_after_their_window_however_long_the_store_remembers() -> None:
    clock, store, told = Clock(), MemoryStore(), list[int]()
    compactor = Compactor(store, keep=86400, window=300, clock=clock, compacted=told.append)
    first = await store.commit(Write("a", b"1", 0))
    await compactor.tick()
    await store.commit(Write("a", b"2", first))
    clock.now += 301
    await compactor.tick()

    assert told == [first]
    assert [r.value for r in (await store.range("", revision=first)).records] == [b"1"]
