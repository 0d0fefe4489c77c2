"""The queue of the controllers: what happens to a key that is added, fails, or is stopped."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable

import pytest

from instar.base import offload
from instar.base import supervision as supervised
from instar.base.errors import Conflict
from instar.server.registry.controllers import queue as queue_module
from instar.server.registry.controllers.queue import Backoff, Queue

AT_ONCE = Backoff(0.0, 0.0)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(scenario(), 10)

    asyncio.run(limited())


def test_a_key_added_twice_before_its_turn_is_attended_once() -> None:
    async def scenario() -> None:
        seen: list[str] = []
        done = asyncio.Event()

        async def reconcile(key: str) -> None:
            seen.append(key)
            if key == "last":
                done.set()

        queue = Queue("thing", reconcile, AT_ONCE, max_concurrent=1)
        for key in ("a", "a", "b", "last"):
            queue.add(key)
        await done.wait()
        assert seen == ["a", "b", "last"]

    run(scenario)


def test_a_key_added_while_it_is_reconciled_is_reconciled_again_never_in_parallel() -> None:
    async def scenario() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()
        finished: asyncio.Queue[int] = asyncio.Queue()
        inside = 0

        async def reconcile(key: str) -> None:
            nonlocal inside
            inside += 1
            entered.set()
            await leave.wait()
            finished.put_nowait(inside)
            inside -= 1

        queue = Queue("thing", reconcile, AT_ONCE)
        queue.add("a")
        await entered.wait()
        queue.add("a")
        queue.add("a")
        leave.set()
        assert [await finished.get(), await finished.get()] == [1, 1]

    run(scenario)


def test_a_failed_key_is_retried_with_growing_delays_and_other_keys_do_not_wait() -> None:
    delays = Backoff(0.5, 3.0)
    assert [delays.after(failures) for failures in (1, 2, 3, 4, 400)] == [0.5, 1.0, 2.0, 3.0, 3.0]

    async def scenario() -> None:
        tries: list[str] = []
        done = asyncio.Event()

        async def reconcile(key: str) -> None:
            tries.append(key)
            if key == "bad" and tries.count("bad") < 3:
                raise Conflict("not yet")
            if key == "bad":
                done.set()

        queue = Queue("thing", reconcile, AT_ONCE, max_concurrent=1)
        queue.add("bad")
        queue.add("good")
        await done.wait()
        assert tries[:2] == ["bad", "good"]
        assert tries.count("bad") == 3

    run(scenario)


def test_an_unexpected_exception_is_logged_with_its_traceback_and_retried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        done = asyncio.Event()
        tries: list[str] = []

        async def reconcile(key: str) -> None:
            tries.append(key)
            if len(tries) == 1:
                raise KeyError("a bug")
            done.set()

        Queue("thing", reconcile, AT_ONCE).add("a")
        await done.wait()

    with caplog.at_level(logging.ERROR):
        run(scenario)
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_seconds_in_return_bring_the_key_back_and_stop_ends_running_and_waiting_ones() -> None:
    async def scenario() -> None:
        looks: asyncio.Queue[str] = asyncio.Queue()
        cancelled = asyncio.Event()

        async def reconcile(key: str) -> float | None:
            looks.put_nowait(key)
            if key == "again":
                return 0.0
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return None

        queue = Queue("thing", reconcile, AT_ONCE)
        queue.add("again")
        assert [await looks.get(), await looks.get()] == ["again", "again"]
        queue.add("hangs")
        while await looks.get() != "hangs":
            pass
        await queue.stop()
        assert cancelled.is_set()
        queue.add("late")
        assert not queue.holds("late")

    run(scenario)


def test_a_key_that_can_wait_is_attended_once_and_lets_itself_be_hurried() -> None:
    async def scenario() -> None:
        seen: list[str] = []
        done = asyncio.Event()

        async def reconcile(key: str) -> None:
            seen.append(key)
            if key == "patient":
                done.set()

        queue = Queue("thing", reconcile, AT_ONCE)
        queue.add_later("hurried", 60.0)
        queue.add_later("patient", 0.01)
        queue.add_later("patient", 0.01)
        queue.add("hurried")
        await done.wait()
        await queue.stop()
        assert seen == ["hurried", "patient"]

    run(scenario)


@pytest.mark.parametrize("seconds", [60.0, 3e11])
def test_a_key_to_look_at_again_is_looked_at_earlier_when_it_is_added(seconds: float) -> None:
    async def scenario() -> None:
        looked = asyncio.Event()
        times: list[str] = []

        async def reconcile(key: str) -> float | None:
            times.append(key)
            looked.set()
            return seconds if len(times) == 1 else None

        queue = Queue("thing", reconcile, AT_ONCE)
        queue.add("budget")
        await looked.wait()
        looked.clear()
        await asyncio.sleep(0)  # its task ends, and sets the timer
        queue.add_later("budget", 0.01)
        queue.add_later("budget", 60.0)
        await looked.wait()
        await queue.stop()
        assert times == ["budget", "budget"]

    run(scenario)


def test_a_key_that_takes_long_gives_its_place_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_module, "_LONG_SECONDS", 0.0)

    async def scenario() -> None:
        others = asyncio.Event()

        async def reconcile(key: str) -> None:
            if key == "slow":
                await asyncio.Event().wait()  # a webhook that does not answer
            others.set()

        queue = Queue("thing", reconcile, AT_ONCE, max_concurrent=1)
        queue.add("slow")
        queue.add("other")
        await others.wait()
        await queue.stop()

    run(scenario)


def test_a_stalled_key_is_cancelled_reported_and_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_module, "_LONG_SECONDS", 0.01)
    monkeypatch.setattr(supervised, "STALLED_SECONDS", 0.0)
    before = supervised.FAILURES.value(("thing",))

    async def scenario() -> None:
        supervision, again, seen = supervised.Supervision(), asyncio.Event(), []

        async def reconcile(key: str) -> None:
            seen.append(key)
            if len(seen) == 1:
                await asyncio.Event().wait()  # never returns
            again.set()

        queue = Queue("thing", reconcile, AT_ONCE, max_concurrent=1, supervision=supervision)
        queue.add("stuck")
        await again.wait()
        assert supervision.trouble() == "the queue of thing has stalled"
        await queue.stop()

    run(scenario)
    assert supervised.FAILURES.value(("thing",)) == before + 1


def test_requests_that_fill_the_threads_delay_no_controller() -> None:
    blocked = threading.Event()

    async def scenario() -> None:
        requests = [
            asyncio.create_task(offload.run_in_thread(blocked.wait, 10.0)) for _ in range(5)
        ]
        done = asyncio.Event()

        async def reconcile(key: str) -> None:
            assert await offload.run_in_thread(lambda: key) == "a"
            done.set()

        queue = Queue("thing", reconcile, AT_ONCE)
        queue.add("a")
        await done.wait()
        assert not any(each.done() for each in requests)
        blocked.set()
        await asyncio.gather(*requests)

    run(scenario)


def test_threads_that_finish_nothing_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offload, "STALLED_SECONDS", 0.0)
    blocked = threading.Event()

    async def scenario() -> None:
        request = asyncio.create_task(offload.run_in_thread(blocked.wait, 10.0))
        await asyncio.sleep(0)
        assert offload.trouble() == "the threads for large work have stalled"
        blocked.set()
        await request
        assert offload.trouble() is None

    run(scenario)
