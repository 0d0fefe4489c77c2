"""Requests have a budget in each turn of the event loop; who waits longest is not forgotten."""

from __future__ import annotations

import asyncio

import pytest

from instar.server.http.loop_budget import LoopBudget

pytestmark = pytest.mark.anyio


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class One:
    """Takes a second of each turn it gets, and stands in line again as often as it is told."""

    def __init__(
        self, name: str, clock: Clock, done: list[str], turns: LoopBudget, again: int
    ) -> None:
        self.name, self.clock, self.done = name, clock, done
        self.turns, self.again = turns, again

    def take_turn(self) -> None:
        self.clock.now += 1
        self.done.append(self.name)
        if self.again:
            self.again -= 1
            self.turns.wait(self, new=False)


async def test_work_beyond_the_budget_waits_for_the_next_turn() -> None:
    clock, done = Clock(), list[str]()
    turns = LoopBudget(3, clock)
    one = One("a", clock, done, turns, again=9)
    assert turns.admit(clock.now)
    clock.now += 3
    assert not turns.admit(clock.now)
    turns.wait(one, new=True)
    await asyncio.sleep(0)
    assert len(done) == 3
    await asyncio.sleep(0)
    assert len(done) == 6


async def test_new_connections_go_first_and_each_turn_serves_one_that_pipelines() -> None:
    clock, done = Clock(), list[str]()
    turns = LoopBudget(3, clock)
    for name in ("m1", "m2"):
        turns.wait(One(name, clock, done, turns, again=0), new=False)
    for name in ("n1", "n2", "n3"):
        turns.wait(One(name, clock, done, turns, again=0), new=True)
    await asyncio.sleep(0)
    assert done == ["m1", "n1", "n2"]
    await asyncio.sleep(0)
    assert done == ["m1", "n1", "n2", "m2", "n3"]


async def test_no_request_overtakes_a_waiting_new_connection() -> None:
    clock = Clock()
    turns = LoopBudget(3, clock)
    turns.wait(One("a", clock, [], turns, again=0), new=True)
    assert not turns.admit(clock.now)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert turns.admit(clock.now)
