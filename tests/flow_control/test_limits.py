"""Seats of priority levels, lending between them, and the work of a request."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.flow_control.priority_levels import (
    SeatDemand,
    current_limits,
    divide,
    priority_level_of,
    seat_limits,
)
from instar.kube.flow_control.work import flow_hash, hand_of, list_work, write_work
from instar.server.registry.controllers.bootstrap.flow_schemas import flow_objects
from tests.flow_control.objects import level


def _defaults() -> dict[str, tuple[int, int, int]]:
    levels = [
        priority_level_of(each)
        for each in flow_objects()
        if each["kind"] == "PriorityLevelConfiguration"
    ]
    found = seat_limits(levels, 600)
    return {name: (each.nominal, each.least, each.widest) for name, each in found.items()}


def test_default_levels_divide_600_seats_as_upstream() -> None:
    """Nominal seats, seats that are not lent, and the most seats of one list; from the metrics of
    kube-apiserver 1.36.4."""
    assert _defaults() == {
        "exempt": (0, 0, 0),
        "catch-all": (13, 13, 0),
        "system": (74, 50, 12),
        "node-high": (98, 73, 15),
        "leader-election": (25, 25, 4),
        "workload-high": (98, 49, 15),
        "workload-low": (245, 24, 37),
        "global-default": (49, 24, 8),
    }


def test_an_idle_level_lends_to_a_busy_one() -> None:
    levels = [level("busy", 10, lendablePercent=0), level("idle", 10, lendablePercent=90)]
    limits = seat_limits(levels, 100)
    demands = {"busy": SeatDemand(), "idle": SeatDemand()}
    demands["busy"].update(200, [200] * 10)

    found = current_limits(levels, limits, demands)

    assert found.seats == {"busy": 95, "idle": 5}


def test_borrowing_stops_at_its_limit() -> None:
    levels = [
        level("busy", 10, lendablePercent=0, borrowingLimitPercent=20),
        level("idle", 10, lendablePercent=90),
    ]
    demands = {"busy": SeatDemand(), "idle": SeatDemand()}
    demands["busy"].update(200, [200] * 10)

    found = current_limits(levels, seat_limits(levels, 100), demands)

    assert found.seats["busy"] == 60


_bounds = st.tuples(
    st.integers(0, 50), st.integers(0, 100), st.floats(0, 300, allow_nan=False)
).map(lambda each: (float(each[0]), float(each[0] + each[1]), max(float(each[0]), each[2])))


@given(st.lists(_bounds, min_size=1, max_size=8), st.floats(0, 1))
def test_parts_keep_their_bounds_and_sum_to_the_total(
    bounds: list[tuple[float, float, float]], part: float
) -> None:
    least, most = sum(each[0] for each in bounds), sum(each[1] for each in bounds)
    total = math.floor(least + (most - least) * part)

    parts, fraction = divide(total, bounds)

    assert all(
        low - 1e-6 <= found <= high + 1e-6
        for found, (low, high, _) in zip(parts, bounds, strict=True)
    )
    assert fraction >= 0
    assert sum(parts) == pytest.approx(max(total, least), abs=1e-3)


@pytest.mark.parametrize(
    ("objects", "size", "limit", "widest", "seats"),
    [
        (0, 0, 0, 10, 1),
        (10, 1_000, 0, 10, 1),
        (10_000, 1_400, 0, 0, 10),
        (10_000, 1_400, 0, 4, 4),
        (10_000, 1_400, 500, 0, 7),
        (10_000, 1_400, 10, 0, 1),
    ],
)
def test_a_list_takes_seats_by_the_bytes_that_it_loads(
    objects: int, size: int, limit: int, widest: int, seats: int
) -> None:
    assert list_work(objects, size, limit, widest).seats == seats


@given(st.integers(0, 10_000), st.integers(0, 50))
def test_the_work_of_a_write_is_the_same_whether_wide_or_long(watches: int, widest: int) -> None:
    work = write_work(watches, widest)

    wanted = math.ceil(watches / 10) * 0.005 if watches >= 10 else 0
    assert work.seats * work.lingers == pytest.approx(wanted)
    assert 1 <= work.seats <= 10


@given(st.text(max_size=20), st.text(max_size=20), st.integers(1, 128), st.integers(1, 8))
def test_a_hand_has_different_queues_and_is_always_the_same(
    name: str, flow: str, queues: int, size: int
) -> None:
    hand = hand_of(flow_hash(name, flow), queues, size)

    assert len(set(hand)) == len(hand) == min(size, queues)
    assert all(0 <= index < queues for index in hand)
    assert hand == hand_of(flow_hash(name, flow), queues, size)
