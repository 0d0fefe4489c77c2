"""Converting ahead keeps up with writes, stays within bounds, and rests after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from instar.base.errors import ServiceUnavailable
from instar.server.registry.controllers import conversion_prefetch as module
from instar.server.registry.controllers.conversion_prefetch import ConversionPrefetch
from instar.server.registry.resources.catalog import Catalog
from instar.wire.storage.watchcache.collection import Change

_AN_HOUR = 3600.0


class Scene:
    """One CRD, read at one other version, whose conversions are written down."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.entries: dict[str, str] = {}
        self.during: Callable[[], object] = lambda: None
        self._converted = asyncio.Event()
        self.outdated: list[str] = []
        codec = SimpleNamespace(
            versions_to_prefetch=lambda _: ["v2"],
            convert_ahead=self._convert,
            outdate=self.outdated.append,
        )
        self._resource = SimpleNamespace(
            serving=SimpleNamespace(converts_remotely=True),
            crd=SimpleNamespace(name="widgets"),
            codec=codec,
            objects=SimpleNamespace(entries=self.entries),
            follow=self._follow,
        )
        catalog = SimpleNamespace(
            customs=lambda: [self._resource],
            custom=lambda _: self._resource,
            on_opened=lambda _: None,
        )
        self.ahead = ConversionPrefetch(cast(Catalog, catalog))
        self.ahead.start()

    def write(self, *names: str) -> None:
        for name in names:
            old, self.entries[name] = self.entries.get(name), name
            self._tell(cast(Any, SimpleNamespace(suffix=name, new=name, old=old)))

    def delete(self, name: str) -> None:
        old = self.entries.pop(name)
        self._tell(cast(Any, SimpleNamespace(suffix=name, new=None, old=old)))

    async def converted(self, count: int) -> list[str]:
        async with asyncio.timeout(30):
            while len(self.names) < count:
                self._converted.clear()
                await self._converted.wait()
        return self.names

    @property
    def names(self) -> list[str]:
        return [name for batch in self.batches for name in batch]

    def _follow(self, tell: Callable[[Change[Any]], None]) -> None:
        self._tell = tell

    async def _convert(self, entries: list[str], version: str) -> int:
        self.batches.append(list(entries))
        self._converted.set()
        self.during()
        return len(entries)


def run(test: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def scenario() -> None:
        scene = Scene()
        try:
            await test(scene)
        finally:
            await scene.ahead.stop()

    asyncio.run(scenario())


@pytest.fixture
def no_company(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GATHER_SECONDS", 0.0)


@pytest.mark.usefixtures("no_company")
def test_a_write_in_the_moment_the_work_ends_is_not_forgotten() -> None:
    async def scenario(scene: Scene) -> None:
        def just_now() -> None:
            scene.during = lambda: None
            asyncio.get_running_loop().call_soon(scene.write, "b")

        scene.during = just_now
        scene.write("a")
        await scene.converted(2)
        scene.write("c")

        assert await scene.converted(3) == ["a", "b", "c"]

    run(scenario)


@pytest.mark.usefixtures("no_company")
def test_an_object_written_again_while_it_waits_goes_once() -> None:
    async def scenario(scene: Scene) -> None:
        scene.write("a", "b", "a", "a")
        await scene.converted(2)

        assert scene.batches == [["a", "b"]]

    run(scenario)


def test_a_full_batch_waits_for_no_company(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GATHER_SECONDS", _AN_HOUR)
    monkeypatch.setattr(module, "_BATCH", 2)

    async def scenario(scene: Scene) -> None:
        scene.write("a", "b", "c", "d")

        assert await scene.converted(4) == ["a", "b", "c", "d"]
        assert scene.batches == [["a", "b"], ["c", "d"]]

    run(scenario)


@pytest.mark.usefixtures("no_company")
def test_beyond_the_limit_the_oldest_entries_are_not_prefetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 3)

    async def scenario(scene: Scene) -> None:
        scene.write("a", "b", "c", "d", "e")

        assert await scene.converted(3) == ["c", "d", "e"]

    run(scenario)


@pytest.mark.usefixtures("no_company")
def test_writes_do_not_shorten_the_pause_after_a_failure() -> None:
    async def scenario(scene: Scene) -> None:
        def refuse() -> None:
            raise ServiceUnavailable("the webhook is down", retry_after=1)

        scene.during = refuse
        scene.write("a")
        await scene.converted(1)
        for number in range(20):
            scene.write(f"n{number}")
            await asyncio.sleep(0)

        assert scene.batches == [["a"]]

    run(scenario)


@pytest.mark.usefixtures("no_company")
def test_overwritten_or_deleted_entries_are_outdated() -> None:
    async def scenario(scene: Scene) -> None:
        scene.write("a", "b", "a")
        scene.delete("b")
        await scene.converted(1)

        assert scene.outdated == ["a", "b"]
        assert scene.batches == [["a"]]

    run(scenario)
