"""Callers that come while a review is under way share the next one, and nothing else."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from instar.base.eager_tasks import start
from instar.base.errors import TooManyRequests
from instar.base.json_values import Object
from instar.wire.conversion.batching import BatchingConverter
from instar.wire.conversion.failure import Attempt, ConversionFailed, FailureType
from instar.wire.webhooks.call_limits import CallerLimit
from tests.conversion.helpers import V2, crd_with, widget


def names(objects: Sequence[Object]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


class Slow:
    """Answers a review when told to; refuses what the test says."""

    def __init__(self) -> None:
        self.reviews: list[list[str]] = []
        self.open = asyncio.Event()
        self.arrived = asyncio.Event()
        self.given_up = 0
        self.unreachable = False
        self.refuse: Callable[[list[str]], FailureType | None] = lambda _: None

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        self.reviews.append(names(objects))
        self.arrived.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        kind = self.refuse(names(objects))
        if kind is not None:
            attempt = Attempt(crd_with({"strategy": "Webhook"}), api_version, objects)
            text = f"no: {names(objects)}"
            raise attempt.failed(text, kind, "", unreachable=self.unreachable)
        return [{**obj, "apiVersion": api_version} for obj in objects]


class Scene:
    def __init__(self, room: int = 100) -> None:
        self.slow = Slow()
        self.turned_away = 0
        self.converter = BatchingConverter(self.slow, CallerLimit("it", room, 0), self._away)

    def _away(self) -> None:
        self.turned_away += 1

    def ask(self, *wanted: str) -> asyncio.Task[list[Object]]:
        objects = [widget(name) for name in wanted]
        return asyncio.create_task(self.converter.convert(objects, V2))

    async def first_is_under_way(self) -> asyncio.Task[list[Object]]:
        first = self.ask("first")
        await self.slow.arrived.wait()
        return first


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_callers_during_a_review_share_the_next_one() -> None:
    async def scenario() -> None:
        scene = Scene()
        first = await scene.first_is_under_way()
        others = [scene.ask("a"), scene.ask("b", "c"), scene.ask("d")]
        await asyncio.sleep(0)
        scene.slow.open.set()

        assert names(await first) == ["first"]
        assert [names(await other) for other in others] == [["a"], ["b", "c"], ["d"]]
        assert scene.slow.reviews == [["first"], ["a", "b", "c", "d"]]

    run(scenario)


def test_a_hanging_review_does_not_delay_the_next_one() -> None:
    async def scenario() -> None:
        scene = Scene()
        first = await scene.first_is_under_way()
        scene.slow.arrived.clear()
        second = scene.ask("second")
        await scene.slow.arrived.wait()  # while the first is still under way

        assert scene.slow.reviews == [["first"], ["second"]]
        scene.slow.open.set()
        await asyncio.gather(first, second)

    run(scenario)


def test_a_whole_page_goes_alone_and_at_once() -> None:
    async def scenario() -> None:
        scene = Scene()
        first = await scene.first_is_under_way()
        page = scene.ask(*(f"n{number}" for number in range(100)))
        await turns(2)  # the caller's own, and the call's

        assert [len(review) for review in scene.slow.reviews] == [1, 100]
        scene.slow.open.set()
        await asyncio.gather(first, page)

    run(scenario)


@pytest.mark.parametrize("kind", [FailureType.MALFORMED, FailureType.CALL])
def test_an_object_that_fails_a_shared_review_fails_only_its_own_caller(kind: FailureType) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.slow.refuse = lambda sent: kind if "bad" in sent else None
        first = await scene.first_is_under_way()
        good, bad, fine = scene.ask("good"), scene.ask("bad"), scene.ask("fine")
        await asyncio.sleep(0)
        scene.slow.open.set()

        assert names(await first + await good + await fine) == ["first", "good", "fine"]
        with pytest.raises(ConversionFailed, match=r"\['bad'\]"):
            await bad

    run(scenario)


def test_an_outage_fails_all_callers_of_a_review_after_one_try() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.slow.refuse = lambda sent: FailureType.CALL if "first" not in sent else None
        scene.slow.unreachable = True
        first = await scene.first_is_under_way()
        others = [scene.ask("a"), scene.ask("b")]
        await asyncio.sleep(0)
        scene.slow.open.set()
        await first

        for other, name in zip(others, ("a", "b"), strict=True):
            with pytest.raises(ConversionFailed) as told:
                await other
            assert told.value.details is not None
            assert told.value.details["name"] == name
            named = [item["message"] for item in told.value.details["causes"]]
            assert [text for text in ("ns/a", "ns/b") if text in named] == [f"ns/{name}"]
        assert scene.slow.reviews == [["first"], ["a", "b"]]

    run(scenario)


def test_a_review_without_waiting_callers_is_cancelled() -> None:
    async def scenario() -> None:
        scene = Scene()
        first = await scene.first_is_under_way()
        scene.slow.arrived.clear()
        a, b = scene.ask("a"), scene.ask("b")
        await scene.slow.arrived.wait()

        a.cancel()
        await asyncio.wait([a])
        assert scene.slow.given_up == 0  # b still waits for it
        b.cancel()
        await asyncio.wait([b])
        await asyncio.sleep(0)
        assert scene.slow.given_up == 1
        scene.slow.open.set()
        assert names(await first) == ["first"]

    run(scenario)


def test_objects_of_a_caller_that_left_are_not_sent() -> None:
    async def scenario() -> None:
        scene = Scene()
        first = await scene.first_is_under_way()
        gone, stays = scene.ask("gone"), scene.ask("stays")
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        scene.slow.open.set()

        assert names(await first + await stays) == ["first", "stays"]
        assert scene.slow.reviews == [["first"], ["stays"]]

    run(scenario)


def test_there_is_room_for_so_many_and_then_no_more() -> None:
    async def scenario() -> None:
        scene = Scene(room=3)
        first = await scene.first_is_under_way()
        others = [scene.ask("a"), scene.ask("b")]
        await asyncio.sleep(0)

        with pytest.raises(TooManyRequests):
            await scene.ask("c")
        assert scene.turned_away == 1
        scene.slow.open.set()
        await asyncio.gather(first, *others)
        assert names(await scene.ask("later")) == ["later"]

    run(scenario)


def test_objects_at_the_right_version_are_not_sent() -> None:
    async def scenario() -> None:
        scene = Scene(room=0)
        already = {**widget("a"), "apiVersion": V2}
        assert await scene.converter.convert([already], V2) == [already]
        assert scene.slow.reviews == []

    run(scenario)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_single_caller_does_not_wait_for_a_batch() -> None:
    async def scenario() -> None:
        scene = Scene()
        first = scene.ask("first")
        await turns(3)  # the caller's own, the departure, the call's own

        assert scene.slow.reviews == [["first"]]
        scene.slow.open.set()
        await first

    run(scenario)


def test_callers_of_consecutive_turns_share_one_review() -> None:
    async def scenario() -> None:
        scene = Scene()
        callers = [scene.ask("a"), scene.ask("b")]
        for name in ("c", "d", "e", "f"):
            await turns(1)
            callers.append(scene.ask(name))
        scene.slow.open.set()
        await asyncio.gather(*callers)

        assert scene.slow.reviews == [["a", "b", "c", "d", "e", "f"]]

    run(scenario)


def test_a_review_that_waits_for_more_callers_is_sent_when_none_comes() -> None:
    async def scenario() -> None:
        scene = Scene()
        callers = [scene.ask("a"), scene.ask("b")]
        await turns(8)

        assert scene.slow.reviews == [["a", "b"]]
        scene.slow.open.set()
        await asyncio.gather(*callers)

    run(scenario)


def test_a_stream_of_callers_does_not_keep_a_review_from_departing() -> None:
    async def scenario() -> None:
        scene = Scene(room=1000)
        callers: list[asyncio.Task[list[Object]]] = []
        while not scene.slow.reviews:
            callers.append(scene.ask(f"n{len(callers)}"))
            await turns(1)

        assert len(scene.slow.reviews[0]) <= 100
        scene.slow.open.set()
        await asyncio.gather(*callers)

    run(scenario)


def test_a_page_can_be_requested_outside_of_any_task() -> None:
    """As requests are, up to their first wait: a call's deadline needs a task."""

    class Timed(Slow):
        async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
            async with asyncio.timeout(10):
                await asyncio.sleep(0)
                return [{**obj, "apiVersion": api_version} for obj in objects]

    async def scenario() -> None:
        converter = BatchingConverter(Timed(), CallerLimit("it", 10, 0))
        page = [widget(f"n{number}") for number in range(100)]
        done: asyncio.Future[list[Object]] = asyncio.get_running_loop().create_future()

        async def request() -> None:
            done.set_result(await converter.convert(page, V2))

        asyncio.get_running_loop().call_soon(start, request())

        assert len(await done) == 100

    run(scenario)


def test_a_shared_review_leaves_nothing_to_the_collector() -> None:
    async def test() -> None:
        scene = Scene()
        scene.slow.open.set()
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await asyncio.gather(*(scene.ask(f"w{number}") for number in range(5)))
            gc.collect()
            left = [type(one).__module__ for one in gc.garbage]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert len(scene.slow.reviews) < 5
        assert BatchingConverter.__module__ not in left

    run(test)
