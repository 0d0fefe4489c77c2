"""A primary killed under writes and its standby promoted: what was acknowledged is there, or its
loss is noticed."""

from __future__ import annotations

import pytest

from tests.storage.postgres_failover import failover_pair, one_round

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


async def test_a_synchronous_standby_has_every_acknowledged_write() -> None:
    async with failover_pair(synchronous=True) as pair:
        report = await one_round(pair, "silent", silent=1)

    assert (report.lost, report.wrong) == ([], [])


async def test_without_one_a_cut_history_is_noticed_by_every_follower() -> None:
    async with failover_pair(synchronous=False) as pair:
        report = await one_round(pair, "cut", silent=1)

    assert report.lost  # the link was silent: nothing could save them
    assert report.went_back == 2
    assert report.wrong == []
