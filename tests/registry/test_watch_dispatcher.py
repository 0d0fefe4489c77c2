"""Rounds of deliveries: in slices, and the longer they take the more goes together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from instar.server.registry.stored.watch_dispatcher import (
    CLOSELY_SECONDS,
    GATHERING_SECONDS,
    LONGEST_PAUSE,
    SHORT_SECONDS,
    SLICE_SECONDS,
    WatchDispatcher,
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Parcels:
    """So many, each of which takes so long to hand over."""

    def __init__(self, clock: Clock, count: int, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self.left = count
        self.calls = 0
        self.done = asyncio.Event()

    def send_pending(self, in_time: Callable[[], bool]) -> bool:
        self.calls += 1
        while self.left:
            self.left -= 1
            self._clock.now += self._seconds
            if not in_time():
                break
        if not self.left:
            self.done.set()
        return not self.left

    def end(self) -> None:
        raise AssertionError("it has not failed")


class Broken:
    """Cannot be handed over at all."""

    ended = False

    def send_pending(self, in_time: Callable[[], bool]) -> bool:
        raise RuntimeError("broken")

    def end(self) -> None:
        self.ended = True


async def delivered(count: int, seconds: float) -> tuple[Parcels, float]:
    """The parcels, and how long a second bundle would be kept waiting after them."""
    clock = Clock()
    dispatcher, parcels = WatchDispatcher(clock), Parcels(clock, count, seconds)
    dispatcher.call(parcels)
    assert parcels.calls == 0
    await parcels.done.wait()
    began = asyncio.get_running_loop().time()
    next_one = Parcels(clock, 1, 0.0)
    dispatcher.call(next_one)
    await next_one.done.wait()
    return parcels, asyncio.get_running_loop().time() - began


def test_fast_rounds_are_dispatched_at_once_and_so_are_the_next_ones() -> None:
    parcels, waited = asyncio.run(delivered(10, 0.00001))
    assert parcels.calls == 1
    assert waited < LONGEST_PAUSE


def test_long_rounds_are_dispatched_in_slices() -> None:
    parcels, _ = asyncio.run(delivered(10, 2 * SLICE_SECONDS))
    assert parcels.calls == 10


def test_after_a_long_round_the_dispatcher_pauses_twice_as_long_within_bounds() -> None:
    _, waited = asyncio.run(delivered(1, 0.02))
    assert waited >= 0.039
    _, waited = asyncio.run(delivered(1, 30.0))
    assert LONGEST_PAUSE * 0.9 <= waited < 10


def test_an_event_right_after_a_long_round_waits_for_others() -> None:
    _, waited = asyncio.run(delivered(1, 2 * SHORT_SECONDS))
    assert waited >= GATHERING_SECONDS * 0.9


async def after_quiet() -> int:
    clock = Clock()
    dispatcher, parcels = WatchDispatcher(clock), Parcels(clock, 1, 2 * SHORT_SECONDS)
    dispatcher.call(parcels)
    await parcels.done.wait()
    clock.now += CLOSELY_SECONDS
    next_one = Parcels(clock, 1, 0.0)
    dispatcher.call(next_one)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return next_one.calls


def test_the_first_after_a_quiet_moment_goes_out_at_once() -> None:
    assert asyncio.run(after_quiet()) == 1


async def hurried() -> int:
    clock = Clock()
    dispatcher, parcels = WatchDispatcher(clock), Parcels(clock, 1, 30.0)
    dispatcher.call(parcels)
    await parcels.done.wait()
    next_one = Parcels(clock, 1, 0.0)
    dispatcher.call(next_one)
    dispatcher.call(next_one, at_once=True)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return next_one.calls


def test_a_large_backlog_is_dispatched_without_a_pause() -> None:
    assert asyncio.run(hurried()) == 1


async def forgotten() -> int:
    dispatcher, parcels = WatchDispatcher(), Parcels(Clock(), 1, 0.0)
    dispatcher.call(parcels)
    dispatcher.forget(parcels)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return parcels.calls


def test_a_removed_channel_is_not_called() -> None:
    assert asyncio.run(forgotten()) == 0


def test_a_failing_channel_does_not_delay_the_others() -> None:
    async def go() -> bool:
        clock = Clock()
        dispatcher, broken, parcels = WatchDispatcher(clock), Broken(), Parcels(clock, 1, 0.0)
        dispatcher.call(broken)
        dispatcher.call(parcels)
        await asyncio.wait_for(parcels.done.wait(), 10)
        return broken.ended

    assert asyncio.run(go())
