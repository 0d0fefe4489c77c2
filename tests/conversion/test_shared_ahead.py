"""Converting ahead of readers: no object twice, no room taken from what is in use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson

from instar.base.json_values import Object
from instar.wire.conversion.caching import SharedConverter
from instar.wire.conversion.lru_cache import ConversionCache
from tests.conversion.helpers import V2
from tests.conversion.test_shared import Held, Reader, settled, with_shared


class Ahead(Reader):
    """Converts ahead what a ``Reader`` would read."""

    async def convert(self) -> int:
        keys = [(obj["metadata"]["uid"], "7") for obj in self.objects]
        return await self.shared.convert_ahead(keys, self.load, V2, self.finish)

    def finish(self, at: int, obj: Object) -> bytes:
        return orjson.dumps(obj)

    def __init__(self, shared: SharedConverter, names: Sequence[str]) -> None:
        super().__init__(shared, names)
        self.shared = shared


def test_cached_conversions_are_not_prefetched() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        await Reader(shared, "ab").read()

        assert await Ahead(shared, "abc").convert() == 1
        assert await Ahead(shared, "abc").convert() == 0

    assert with_shared(scenario).batches == [["a", "b"], ["c"]]


def test_running_conversions_are_not_prefetched_and_readers_share_prefetches() -> None:
    async def scenario(held: Held, shared: SharedConverter) -> None:
        reading = asyncio.create_task(Reader(shared, "ab").read())
        await settled()
        ahead = asyncio.create_task(Ahead(shared, "abcd").convert())
        await settled()
        late = asyncio.create_task(Reader(shared, "cd").read())
        await settled()
        held.release.set()

        assert (await reading, await ahead, await late) == (["a", "b"], 2, ["c", "d"])

    assert with_shared(scenario).batches == [["a", "b"], ["c", "d"]]


def test_requested_entries_are_never_evicted_by_prefetched_ones() -> None:
    memo = ConversionCache(max_bytes=6000)

    async def scenario(held: Held, shared: SharedConverter) -> None:
        held.release.set()
        await Reader(shared, "ab").read()
        await Ahead(shared, "cdefghijklmnopqrstuvwxyz").convert()
        await Reader(shared, "ab").read()

    assert with_shared(scenario, memo).batches[0] == ["a", "b"]
    assert len(with_shared(scenario, memo).batches) == 2
    assert memo.bytes <= 6000


def test_nothing_is_prefetched_when_requested_entries_fill_three_quarters() -> None:
    memo = ConversionCache(max_bytes=2000)

    async def scenario(held: Held, shared: SharedConverter) -> None:
        assert shared.has_room
        held.release.set()
        await Reader(shared, "abc").read()
        assert not shared.has_room

        for obj in Reader(shared, "abc").objects:
            shared.outdate((obj["metadata"]["uid"], "7"), [V2])

        assert shared.has_room

    with_shared(scenario, memo)
