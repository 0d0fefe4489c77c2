"""Seats and turns: how many requests at once, in which order, and what a flood may take."""

from __future__ import annotations

import asyncio

import pytest

from instar.base import limits
from instar.kube.flow_control.work import RequestWork
from instar.server.flow_control.seat_queues import FlowRejection, SeatRequest
from tests.flow_control.objects import (
    BY_USER,
    QUEUING,
    asked,
    enter,
    estimate_of,
    level,
    next_turn,
    one_level,
    schema,
    seated,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_single_active_flow_may_use_all_seats_of_its_level() -> None:
    control, _ = one_level(400)

    found = [seated(control) for _ in range(400)]

    assert all(each.executing for each in found)


async def test_a_request_beyond_the_seats_waits_until_one_is_free() -> None:
    control, _ = one_level(2)
    first, _second = seated(control), seated(control)
    third = seated(control)
    assert third.granted is not None
    assert not third.executing

    control.leave(first)

    assert await asyncio.wait_for(third.granted, 5) is None
    assert third.executing


async def test_a_level_without_queues_rejects_what_finds_no_seat() -> None:
    control, _ = one_level(1, queuing=None)
    seated(control)

    assert enter(control) is FlowRejection.NO_SEAT


async def test_a_full_queue_rejects() -> None:
    control, _ = one_level(1, queuing={"queues": 1, "handSize": 1, "queueLengthLimit": 2})

    found = [enter(control) for _ in range(5)]

    assert found[3:] == [FlowRejection.QUEUE_FULL, FlowRejection.QUEUE_FULL]


async def test_a_request_that_waits_too_long_is_rejected() -> None:
    control, _ = one_level(1, patience=0.05)
    seated(control)
    late = seated(control)
    assert late.granted is not None

    assert await asyncio.wait_for(late.granted, 5) is FlowRejection.TIMED_OUT
    control.leave(late)

    lines = [line for each in control.metrics.all() for line in each.family().lines()]
    assert any("rejected" in line and "time-out" in line for line in lines)


async def test_freed_seats_alternate_between_a_flood_and_another_user() -> None:
    control, _ = one_level(1)
    holder = seated(control, "x")
    flood = [seated(control, "flooder") for _ in range(50)]
    calm = seated(control, "calm")
    served: list[str] = []
    current = holder
    for _ in range(5):
        control.leave(current)
        await next_turn()
        current = next(each for each in [*flood, calm] if each.executing)
        served.append(current.flow)

    assert "calm" in served


async def test_while_others_are_active_a_flood_begins_few_requests_in_a_turn() -> None:
    control, _ = one_level(400)
    seated(control, "calm")

    flood = [seated(control, "flooder") for _ in range(30)]
    at_once = sum(each.executing for each in flood)
    await next_turn()

    assert at_once == limits.BEGUN_PER_TURN
    assert sum(each.executing for each in flood) > at_once


async def test_a_cancelled_request_leaves_its_queue() -> None:
    control, _ = one_level(1)
    first = seated(control)
    gone, kept = seated(control), seated(control)

    control.leave(gone)
    control.leave(first)
    assert kept.granted is not None
    await asyncio.wait_for(kept.granted, 5)

    assert (gone.executing, kept.executing) == (False, True)


async def test_a_wide_request_waits_for_all_its_seats() -> None:
    work = {"now": RequestWork(1)}
    control, _ = one_level(4, estimate=lambda *_: work["now"])
    narrow = [seated(control) for _ in range(3)]
    work["now"] = RequestWork(4)
    wide = seated(control)

    control.leave(narrow[0])
    await next_turn()
    waits = not wide.executing
    for each in narrow[1:]:
        control.leave(each)
    await next_turn()

    assert waits
    assert wide.executing


async def test_a_request_wider_than_its_level_is_served_alone() -> None:
    control, _ = one_level(2, estimate=estimate_of(RequestWork(5)))

    first, second = seated(control), seated(control)

    assert first.executing
    assert not second.executing
    control.leave(first)
    await next_turn()
    assert second.executing


async def test_the_seats_of_a_write_stay_taken_while_its_events_are_sent() -> None:
    control, _ = one_level(1, estimate=estimate_of(RequestWork(1, lingers=0.01)))
    first = seated(control, verb="create")
    second = seated(control, verb="create")
    assert second.granted is not None

    control.leave(first)
    await next_turn()
    at_once = second.executing

    assert await asyncio.wait_for(second.granted, 5) is None
    assert not at_once


async def test_a_flood_in_one_level_takes_no_seat_of_another() -> None:
    control, objects = one_level(20)
    objects.replace(
        [schema("a", "a", 1, rules=_for("ann")), schema("b", "b", 2, **BY_USER)],
        [level("a", 10, queuing=QUEUING), level("b", 10, queuing=QUEUING)],
    )
    flood = [enter(control, "ann") for _ in range(100)]

    other = seated(control, "bob")

    assert other.executing
    executing = [each for each in flood if isinstance(each, SeatRequest) and each.executing]
    assert len(executing) <= limits.BEGUN_PER_TURN * 10


async def test_a_changed_object_counts_for_the_next_request() -> None:
    control, objects = one_level(20)
    before = control.flow_of(asked("ann"))

    objects.replace([schema("new", "fresh", **BY_USER)], [level("fresh", queuing=QUEUING)])

    found = control.flow_of(asked("ann"))
    assert (before.kind.schema.name, found.kind.schema.name) == ("all", "new")
    assert found.kind.headers[0][1] == b"uid-new"


async def test_requests_of_a_deleted_level_finish() -> None:
    control, objects = one_level(1)
    first, second = seated(control), seated(control)
    objects.replace([], [])
    control.flow_of(asked("ann"))
    assert second.granted is not None

    control.leave(first)

    assert await asyncio.wait_for(second.granted, 5) is None
    control.leave(second)
    control.configuration.refresh()
    assert second.kind.seats.idle


async def test_a_schema_of_a_missing_level_counts_as_absent() -> None:
    control, objects = one_level(10)
    objects.replace([schema("dangling", "nowhere", 1)], [])

    assert control.flow_of(asked("ann")).kind.schema.name == "catch-all"


def _for(user: str) -> list[dict[str, object]]:
    everything = {
        "verbs": ["*"],
        "apiGroups": ["*"],
        "resources": ["*"],
        "clusterScope": True,
        "namespaces": ["*"],
    }
    subject = {"kind": "User", "user": {"name": user}}
    return [{"subjects": [subject], "resourceRules": [everything]}]
