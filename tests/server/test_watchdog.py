"""Whoever holds the event loop is named, and everybody can see how late it is."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from instar.server.http.messages import Request
from instar.server.lifecycle import watchdog as watching
from instar.server.lifecycle.watchdog import Watchdog

pytestmark = pytest.mark.anyio
NAMED = "GET /api/v1/slow (in "


def work_on(request: Request, seconds: float, watchdog: Watchdog) -> None:
    """Of processor time, and until the watchdog's thread has had its turn: how busy the machine is
    does not matter."""
    begun = time.thread_time()
    while (taken := time.thread_time() - begun) < 10:
        if taken > seconds and watchdog._suspect.startswith(NAMED):
            return


async def beaten(watchdog: Watchdog) -> None:
    """Twice: the first beat may have been late already."""
    wanted = watchdog._beats + 2
    for _ in range(1_000):
        if watchdog._beats >= wanted:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not beat")


async def test_a_request_that_holds_the_loop_is_named_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watchdog = Watchdog(threshold=0.1)
    watchdog.start()
    try:
        await beaten(watchdog)
        with caplog.at_level(logging.WARNING, logger=watching.__name__):
            work_on(Request("GET", "/api/v1/slow", {}, {}, b""), 0.6, watchdog)
            await beaten(watchdog)
    finally:
        watchdog.stop()

    [slow] = [held for held in watchdog.held if held.by.startswith(NAMED)]
    assert slow.seconds > 0.5
    assert "held for" in caplog.text
    lag, worst = ("\n".join(metric.family().lines()) for metric in watchdog.metrics())
    assert "instar_loop_lag_seconds_count" in lag
    assert float(worst.split()[-1]) > 0.4


async def test_a_loop_that_waits_is_not_held() -> None:
    watchdog = Watchdog(threshold=0.1)
    watchdog.start()
    try:
        await beaten(watchdog)
    finally:
        watchdog.stop()
    assert watchdog.held == []
