"""Seats and turns: how many at once, and that one who floods slows nobody else."""

from __future__ import annotations

import asyncio

import pytest

from instar.base import limits
from instar.server.http.fair_queue import FairQueue, FlowRefusal, Seat

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def seat(found: Seat | FlowRefusal) -> Seat:
    assert isinstance(found, Seat)
    return found


async def test_a_single_active_user_is_not_limited() -> None:
    flow = FairQueue(reads=400, writes=200)

    seats = [seat(flow.enter("ann", "get")) for _ in range(400)]

    assert all(each.held for each in seats)


async def test_a_seat_too_many_waits_until_one_is_left() -> None:
    flow = FairQueue(reads=2, writes=2)
    first, second = (seat(flow.enter("ann", "get")) for _ in range(2))
    third = seat(flow.enter("ann", "list"))
    writer = seat(flow.enter("ann", "create"))
    assert third.waiting is not None

    flow.leave(first)

    assert await asyncio.wait_for(third.waiting, 5) is None
    assert (second.held, third.held, writer.held) == (True, True, True)


async def test_none_is_any_number() -> None:
    flow = FairQueue(reads=0, writes=0)
    flow.notice("bob")

    seats = [seat(flow.enter("ann", "update")) for _ in range(limits.BEGUN_PER_TURN)]

    assert all(each.held for each in seats)


async def test_a_request_that_waited_too_long_is_429() -> None:
    flow = FairQueue(reads=1, writes=1, patience=0.05)
    flow.enter("ann", "get")
    late = seat(flow.enter("ann", "get"))
    assert late.waiting is not None

    assert await asyncio.wait_for(late.waiting, 5) is FlowRefusal.LATE
    flow.leave(late)
    assert "readOnly" in "".join(line for each in flow.metrics() for line in each.family().lines())


async def test_a_queue_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING_PER_USER", 3)
    flow = FairQueue(reads=1, writes=1)

    found = [flow.enter("ann", "get") for _ in range(6)]
    other = flow.enter("bob", "get")

    assert found[4:] == [FlowRefusal.FULL, FlowRefusal.FULL]
    assert isinstance(other, Seat)


async def test_freed_seats_go_round_among_users() -> None:
    flow = FairQueue(reads=1, writes=1)
    holder = seat(flow.enter("x", "get"))
    flood = [seat(flow.enter("flooder", "get")) for _ in range(50)]
    calm = seat(flow.enter("calm", "get"))
    served = []
    current = holder
    for _ in range(4):
        flow.leave(current)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        current = next(each for each in [*flood, calm] if each.held)
        served.append(current.user)

    assert "calm" in served[:2]


async def test_with_several_users_a_flood_starts_few_requests_a_turn() -> None:
    flow = FairQueue(reads=400, writes=200)
    flow.notice("calm")

    flood = [seat(flow.enter("flooder", "get")) for _ in range(30)]
    at_once = sum(each.held for each in flood)
    calm = seat(flow.enter("calm", "get"))
    await asyncio.sleep(0)
    next_turn = sum(each.held for each in flood)

    assert calm.held
    assert at_once == limits.BEGUN_PER_TURN
    assert next_turn == 2 * limits.BEGUN_PER_TURN


async def test_a_user_gets_only_its_share_of_the_seats_while_other_users_send() -> None:
    flow = FairQueue(reads=10, writes=10)
    flow.notice("calm")
    held = 0
    for _ in range(5):
        held += sum(seat(flow.enter("flooder", "get")).held for _ in range(4))
        await asyncio.sleep(0)

    assert held == 5


async def test_a_cancelled_request_leaves_its_queue() -> None:
    flow = FairQueue(reads=1, writes=1)
    first = seat(flow.enter("ann", "get"))
    gone, kept = seat(flow.enter("ann", "get")), seat(flow.enter("ann", "get"))

    flow.leave(gone)
    flow.leave(first)
    assert kept.waiting is not None
    await asyncio.wait_for(kept.waiting, 5)

    assert (gone.held, kept.held) == (False, True)
