"""One timer for many: everybody is called once, in time, unless they were taken off."""

from __future__ import annotations

import asyncio

from instar.server.registry.stored.timer_wheel import STEP_SECONDS, TimerWheel


class Bell:
    def __init__(self, calls: list[str], name: str) -> None:
        self._calls, self._name = calls, name
        self.rung = asyncio.Event()

    def due(self) -> None:
        self._calls.append(self._name)
        self.rung.set()


async def rung_in_order() -> tuple[list[str], float]:
    loop, wheel, calls = asyncio.get_running_loop(), TimerWheel(), list[str]()
    late, early, other = (Bell(calls, name) for name in ("late", "early", "other"))
    began = loop.time()
    wheel.put(late, began + 3 * STEP_SECONDS)
    wheel.put(early, began + STEP_SECONDS)
    wheel.take(other, wheel.put(other, began + STEP_SECONDS))
    await early.rung.wait()
    waited = loop.time() - began
    await late.rung.wait()
    return calls, waited


def test_targets_are_called_in_time_unless_removed() -> None:
    calls, waited = asyncio.run(rung_in_order())
    assert calls == ["early", "late"]
    assert waited >= STEP_SECONDS * 0.99


async def put_on_again() -> list[str]:
    loop, wheel, calls = asyncio.get_running_loop(), TimerWheel(), list[str]()

    class Again(Bell):
        def due(self) -> None:
            super().due()
            if len(calls) == 1:
                self.rung.clear()
                wheel.put(self, loop.time() + STEP_SECONDS)

    bell = Again(calls, "again")
    wheel.put(bell, loop.time())
    while len(calls) < 2:
        await bell.rung.wait()
        await asyncio.sleep(0)
    return calls


def test_a_called_target_may_be_added_again() -> None:
    assert asyncio.run(put_on_again()) == ["again", "again"]


async def taken_off_last() -> bool:
    wheel = TimerWheel()
    bell = Bell([], "")
    wheel.take(bell, wheel.put(bell, asyncio.get_running_loop().time() + 3600))
    return wheel.waits


def test_an_empty_wheel_keeps_no_timer() -> None:
    assert asyncio.run(taken_off_last()) is False
