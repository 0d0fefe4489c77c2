"""One page of metrics for all processes that serve a port."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from instar.base.errors import ServiceUnavailable
from instar.base.metrics import Counter, Family, Gauge, Histogram, Measured, MergeMode, Metric
from instar.base.supervision import Supervision
from instar.server.endpoints.metrics import Metrics
from instar.server.lifecycle import metrics_merge
from instar.server.lifecycle.metrics_merge import merge_worker_metrics, share_worker_metrics


class Process:
    """One that counts, and has a value that is the same everywhere and one that adds up."""

    def __init__(self, running: int = 0, stored: int = 0) -> None:
        self.metrics = Metrics()
        self.counter = Counter("things_total", "Things.", ("kind",))
        self.times = Histogram("time_seconds", "Time.", (), (1.0, 2.0))
        self.metrics.add(
            self.counter,
            self.times,
            Measured("running", "Running.", (), lambda: [((), running)], MergeMode.SUM),
            Measured("stored", "Stored.", (), lambda: [((), stored)]),
        )


def numbers_of(families: list[Family], name: str) -> dict[tuple[str, ...], list[float]]:
    found = next(family for family in families if family.name == name)
    return {labels: list(values) for labels, values in found.series.items()}


async def everybodys(process: Process) -> list[Family]:
    assert process.metrics.of_all is not None
    return await process.metrics.of_all()


def test_every_process_serves_the_sum_of_all_metrics(tmp_path: Path) -> None:
    first, second, third = Process(1, 7), Process(2, 7), Process(4, 6)
    first.counter.add(("a",), 1)
    second.counter.add(("a",), 10)
    third.counter.add(("b",), 100)
    second.times.observe((), 1.5)
    third.times.observe((), 9)

    async def scenario() -> list[list[Family]]:
        async with (
            merge_worker_metrics(first.metrics, tmp_path, Supervision()),
            share_worker_metrics(second.metrics, tmp_path),
            share_worker_metrics(third.metrics, tmp_path),
        ):
            return [await everybodys(process) for process in (first, second, third)]

    for families in asyncio.run(scenario()):
        assert numbers_of(families, "things_total") == {("a",): [11], ("b",): [100]}
        assert numbers_of(families, "time_seconds") == {(): [0, 1, 1, 10.5]}
        assert numbers_of(families, "running") == {(): [7]}
        assert numbers_of(families, "stored") == {(): [7]}
        assert numbers_of(families, "instar_processes") == {(): [3]}


def test_counters_of_an_ended_process_are_kept_and_gauges_are_dropped(tmp_path: Path) -> None:
    first, second, third = Process(1), Process(2), Process(4)

    async def scenario() -> list[Family]:
        async with merge_worker_metrics(first.metrics, tmp_path, Supervision()):
            async with share_worker_metrics(second.metrics, tmp_path):
                second.counter.add(("a",), 10)
            async with share_worker_metrics(third.metrics, tmp_path):
                third.counter.add(("a",), 100)
                while True:  # its last words are on their way
                    families = await everybodys(third)
                    if numbers_of(families, "instar_processes") == {(): [2]}:
                        return families

    families = asyncio.run(scenario())

    assert numbers_of(families, "things_total") == {("a",): [110]}
    assert numbers_of(families, "running") == {(): [5]}


def test_the_last_metrics_of_a_silent_worker_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Process(), Process()
    second.counter.add(("a",), 10)
    monkeypatch.setattr(metrics_merge, "_PATIENCE", 0.05)

    async def scenario() -> list[Family]:
        async with (
            merge_worker_metrics(first.metrics, tmp_path, Supervision()),
            share_worker_metrics(second.metrics, tmp_path),
        ):
            await everybodys(first)
            monkeypatch.setattr(metrics_merge._MetricsConnection, "send_families", lambda *_: None)
            return await everybodys(first)

    assert numbers_of(asyncio.run(scenario()), "things_total") == {("a",): [10]}


def test_a_worker_says_so_rather_than_telling_its_own_numbers_alone(tmp_path: Path) -> None:
    first, second = Process(), Process()

    async def scenario() -> None:
        async with merge_worker_metrics(first.metrics, tmp_path, Supervision()):
            worker = share_worker_metrics(second.metrics, tmp_path)
            await worker.__aenter__()
        await everybodys(second)

    with pytest.raises(ServiceUnavailable):
        asyncio.run(scenario())


def test_a_single_process_merges_no_metrics() -> None:
    assert Metrics().of_all is None


@pytest.mark.parametrize("metric", [Counter("c", "C"), Gauge("g", "G")])
def test_a_family_survives_the_way(metric: Metric) -> None:
    family = metric.family()

    assert list(Family.of_plain(family.plain()).lines()) == list(family.lines())
