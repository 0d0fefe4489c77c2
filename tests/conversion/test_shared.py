"""Reads share conversions: finished ones from memory, running ones with each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence

import orjson
import pytest

from instar.base.json_values import Object
from instar.wire.conversion.caching import SharedConverter
from instar.wire.conversion.factory import shared_converter_for
from instar.wire.conversion.failure import ConversionFailed, FailureType
from instar.wire.conversion.instrumented import request_clock
from instar.wire.conversion.lru_cache import ConversionCache
from instar.wire.conversion.metrics import PrometheusConversionMetrics
from tests.conversion.helpers import V1, V2, crd_with, run, services, widget, widgets
from tests.support.webhook import Webhook


class Held:
    """A converter whose calls wait until they are let go, and which can fail on a name."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.release = asyncio.Event()
        self.refuse = ""
        self.failure_type = FailureType.MALFORMED
        self.cancelled = 0

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        names = [obj["metadata"]["name"] for obj in objects]
        self.batches.append(names)
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.refuse in names:
            raise ConversionFailed(f"no {self.refuse}", failure_type=self.failure_type)
        return [{**obj, "apiVersion": api_version} for obj in objects]


class Reader:
    """Reads some objects, as a codec would: keys at hand, objects decoded when asked for."""

    def __init__(self, shared: SharedConverter, names: Sequence[str], *, bypass: bool = False):
        self.objects = [widget(name) for name in names]
        self.loaded: list[int] = []
        self._shared = shared
        self._bypass = bypass

    def load(self, positions: Sequence[int]) -> list[Object]:
        self.loaded += positions
        return [self.objects[at] for at in positions]

    async def read(
        self, api_version: str = V2, keys: Sequence[Hashable] | None = None
    ) -> list[str]:
        if keys is None:
            keys = [(obj["metadata"]["uid"], "7") for obj in self.objects]
        found = await self._shared.convert_encoded(
            keys, self.load, api_version, lambda at, obj: orjson.dumps(obj), bypass=self._bypass
        )
        return [orjson.loads(data)["metadata"]["name"] for data in found]


async def settled() -> None:
    """Lets every task run until it waits for something from outside."""
    for _ in range(5):
        await asyncio.sleep(0)


def with_shared(
    scenario: Callable[[Held, SharedConverter], object], memo: ConversionCache | None = None
) -> Held:
    async def body() -> Held:
        held = Held()
        result = scenario(
            held, SharedConverter(held, memo if memo is not None else ConversionCache())
        )
        assert asyncio.iscoroutine(result)
        await result
        return held

    return run(body())


def test_a_second_read_is_answered_from_memory_without_decoding() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        second = Reader(shared, "abc")
        await Reader(shared, "abc").read()

        assert await second.read() == ["a", "b", "c"]
        assert second.loaded == []

    assert with_shared(scenario).batches == [["a", "b", "c"]]


def test_only_uncached_objects_are_sent_and_in_one_batch() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        await Reader(shared, "bd").read()

        assert await Reader(shared, "abcde").read() == list("abcde")

    assert with_shared(scenario).batches == [["b", "d"], ["a", "c", "e"]]


def test_a_new_resource_version_or_target_is_another_conversion() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        reader = Reader(shared, "a")
        await reader.read(keys=[("uid-a", "7")])
        await reader.read(keys=[("uid-a", "8")])
        await reader.read("example.com/v3", keys=[("uid-a", "7")])

    assert len(with_shared(scenario).batches) == 3


def test_objects_without_a_key_are_never_remembered() -> None:
    memo = ConversionCache()

    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        for _ in range(2):
            assert await Reader(shared, "ab").read(keys=[None, None]) == ["a", "b"]

    assert len(with_shared(scenario, memo).batches) == 2
    assert len(memo) == 0


def test_plain_convert_is_for_writes_and_leaves_no_trace() -> None:
    memo = ConversionCache()

    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        [converted] = await shared.convert([widget(resourceVersion="7")], V2)
        assert converted["apiVersion"] == V2

    with_shared(scenario, memo)

    assert len(memo) == 0


def test_bypass_converts_afresh_and_leaves_no_trace() -> None:
    memo = ConversionCache()

    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        for _ in range(2):
            assert await Reader(shared, "ab", bypass=True).read() == ["a", "b"]

    assert len(with_shared(scenario, memo).batches) == 2
    assert len(memo) == 0


def test_the_same_object_twice_in_a_batch_is_sent_once() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        assert await Reader(shared, "aba").read() == ["a", "b", "a"]

    assert with_shared(scenario).batches == [["a", "b"]]


def test_closing_forgets_and_remembers_nothing_more() -> None:
    memo = ConversionCache()

    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        await Reader(shared, "a").read()
        shared.close()
        await Reader(shared, "a").read()

    assert len(with_shared(scenario, memo).batches) == 2
    assert (len(memo), memo.bytes) == (0, 0)


def test_readers_at_the_same_time_share_one_call() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        readers = [asyncio.create_task(Reader(shared, "abc").read()) for _ in range(50)]
        overlapping = asyncio.create_task(Reader(shared, "bcd").read())
        await settled()
        held.release.set()

        assert await asyncio.gather(*readers) == [["a", "b", "c"]] * 50
        assert await overlapping == ["b", "c", "d"]

    assert with_shared(scenario).batches == [["a", "b", "c"], ["d"]]


def test_calls_are_shared_without_a_memory_too() -> None:
    async def scenario() -> list[list[str]]:
        held = Held()
        shared = SharedConverter(held)
        readers = [asyncio.create_task(Reader(shared, "a").read()) for _ in range(5)]
        await settled()
        held.release.set()
        await asyncio.gather(*readers)
        await Reader(shared, "a").read()
        return held.batches

    assert run(scenario()) == [["a"], ["a"]]


def test_a_reader_that_leaves_does_not_take_the_call_with_it() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        first = asyncio.create_task(Reader(shared, "a").read())
        second = asyncio.create_task(Reader(shared, "a").read())
        await settled()
        first.cancel()
        await settled()
        held.release.set()

        assert await second == ["a"]
        assert first.cancelled()

    held = with_shared(scenario)
    assert (held.cancelled, len(held.batches)) == (0, 1)


def test_a_shared_call_without_callers_is_cancelled_and_can_be_repeated() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        readers = [asyncio.create_task(Reader(shared, "a").read()) for _ in range(3)]
        await settled()
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
        late = asyncio.create_task(Reader(shared, "a").read())
        await settled()
        held.release.set()

        assert await late == ["a"]

    held = with_shared(scenario)
    assert (held.cancelled, len(held.batches)) == (1, 2)


def test_all_callers_get_the_failure_of_a_shared_call_and_it_is_not_cached() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.refuse = "a"
        readers = [asyncio.create_task(Reader(shared, "a").read()) for _ in range(5)]
        await settled()
        held.release.set()
        results = await asyncio.gather(*readers, return_exceptions=True)
        held.refuse = ""

        assert [str(result) for result in results] == ["no a"] * 5
        assert await Reader(shared, "a").read() == ["a"]

    assert len(with_shared(scenario).batches) == 2


def test_a_reader_does_not_fail_for_an_object_of_another_reader() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.refuse = "bad"
        lister = asyncio.create_task(Reader(shared, ["good", "bad"]).read())
        getter = asyncio.create_task(Reader(shared, ["good"]).read())
        await settled()
        held.release.set()

        assert await getter == ["good"]
        with pytest.raises(ConversionFailed):
            await lister

    assert with_shared(scenario).batches == [["good", "bad"], ["good"]]


def test_readers_that_retry_after_a_failed_shared_call_share_the_retry() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.refuse = "bad"
        lister = asyncio.create_task(Reader(shared, ["good", "bad"]).read())
        getters = [asyncio.create_task(Reader(shared, ["good"]).read()) for _ in range(20)]
        await settled()
        held.release.set()

        assert await asyncio.gather(*getters) == [["good"]] * 20
        with pytest.raises(ConversionFailed):
            await lister

    assert with_shared(scenario).batches == [["good", "bad"], ["good"]]


def test_an_unreachable_webhook_is_not_called_again_for_every_reader() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.refuse, held.failure_type = "bad", FailureType.CALL
        lister = asyncio.create_task(Reader(shared, ["good", "bad"]).read())
        getter = asyncio.create_task(Reader(shared, ["good"]).read())
        await settled()
        held.release.set()
        results = await asyncio.gather(lister, getter, return_exceptions=True)

        assert [str(result) for result in results] == ["no bad", "no bad"]

    assert len(with_shared(scenario).batches) == 1


def test_a_request_is_charged_for_shared_waiting() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        async def request() -> float:
            with request_clock() as clock:
                await Reader(shared, "a").read()
            return clock.seconds

        requests = [asyncio.create_task(request()) for _ in range(3)]
        await settled()
        held.release.set()

        assert all(seconds > 0 for seconds in await asyncio.gather(*requests))

    with_shared(scenario)


def test_200_readers_of_500_objects_through_a_slow_webhook_are_one_review(hook: Webhook) -> None:
    hook.pause()
    objects = widgets(500)
    keys = [(obj["metadata"]["uid"], "1") for obj in objects]
    metrics = PrometheusConversionMetrics()

    async def scenario() -> list[list[bytes]]:
        async with services(metrics=metrics) as made:
            shared = shared_converter_for(crd_with(hook.conversion()), made)

            async def read() -> list[bytes]:
                return await shared.convert_encoded(
                    keys,
                    lambda positions: [objects[at] for at in positions],
                    V2,
                    lambda at, obj: orjson.dumps(obj),
                )

            readers = [asyncio.create_task(read()) for _ in range(200)]
            await asyncio.to_thread(hook.wait_for_calls, 1)
            hook.resume()
            return await asyncio.gather(*readers)

    results = run(scenario())

    assert (hook.reviews, hook.objects) == (1, 500)
    assert len(results) == 200
    expected = [{**obj, "apiVersion": V2} for obj in objects]
    assert [orjson.loads(data) for data in results[0]] == expected
    assert all(result == results[0] for result in results)
    assert objects[0]["apiVersion"] == V1
    cache = {
        kind: metrics.cache.value(("widgets.example.com", kind)) for kind in ("miss", "shared")
    }
    assert cache == {"miss": 500, "shared": 199 * 500}
