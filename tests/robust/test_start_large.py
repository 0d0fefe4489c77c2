"""A start on a store with a large collection: the others are served while it is read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from instar.base import limits
from instar.server.lifecycle.composition import ServerComponents
from instar.server.lifecycle.lifetime import running
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.resource import Resource
from instar.server.registry.stored.entry import CacheEntry
from instar.server.settings import Settings
from instar.wire.storage.watchcache import cache
from instar.wire.storage.watchcache.cache import Cache
from tests.support.inside import CRDS, asked, crd, named

_THINGS = "/apis/example.com/v1/namespaces/default/things"
_OTHERS = "/apis/example.com/v1/namespaces/default/others"
_MANY = 30


async def fill(settings: Settings) -> None:
    async with running(settings) as server:
        for plural, kind in (("things", "Thing"), ("others", "Other")):
            assert (await asked(server.machinery, "POST", CRDS, crd(plural, kind)))[0] == 201
        for number in range(_MANY):
            body = named("Thing", f"t{number}")
            assert (await asked(server.machinery, "POST", _THINGS, body))[0] == 201
        assert (await asked(server.machinery, "POST", _OTHERS, named("Other", "o")))[0] == 201


@contextlib.asynccontextmanager
async def starting(
    settings: Settings, gate: asyncio.Event, ready: asyncio.Event | None = None
) -> AsyncIterator[ServerComponents]:
    """A server that has read what is small, and reads the rest once the gate is open. It sets
    ``ready`` when it has started."""
    begun: asyncio.Future[ServerComponents] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()
    begin, finish = ServerComponents.begin, Cache.finish

    async def noted(machinery: ServerComponents) -> None:
        await begin(machinery)
        begun.set_result(machinery)

    async def gated(self: Cache[Any]) -> None:
        await gate.wait()
        await finish(self)

    async def serve() -> None:
        async with running(settings):
            if ready is not None:
                ready.set()
            await over.wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServerComponents, "begin", noted)
        patch.setattr(Cache, "finish", gated)
        patch.setattr(cache, "_LARGE", _MANY - 1)
        task = asyncio.create_task(serve())
        try:
            yield await asyncio.wait_for(begun, 20)
        finally:
            gate.set()
            over.set()
            await task


@pytest.mark.parametrize("values", ["memory", "disk"])
def test_while_a_large_collection_loads_others_are_served_and_its_requests_wait(
    tmp_path: Path, values: str
) -> None:
    async def scenario() -> None:
        settings = Settings(port=0, storage=f"sqlite:{tmp_path}/s.db", values=values)
        await fill(settings)
        gate, ready = asyncio.Event(), asyncio.Event()
        async with starting(settings, gate, ready) as machinery:
            assert (await asked(machinery, "GET", f"{_OTHERS}/o"))[0] == 200
            assert (await asked(machinery, "GET", "/api/v1/namespaces"))[0] == 200
            assert (await asked(machinery, "GET", "/apis"))[0] == 200
            assert (await asked(machinery, "GET", "/livez"))[0] == 200
            assert (await asked(machinery, "GET", "/readyz"))[0] == 500
            waiting = [
                asyncio.create_task(asked(machinery, "GET", _THINGS)),
                asyncio.create_task(asked(machinery, "POST", _OTHERS, named("Other", "p"))),
            ]
            done, _ = await asyncio.wait(waiting, timeout=0.05)
            assert not done
            gate.set()
            (listed, things), (created, _) = await asyncio.gather(*waiting)
            assert (listed, len(things["items"]), created) == (200, _MANY, 201)
            await ready.wait()
            assert (await asked(machinery, "GET", "/readyz"))[0] == 200

    asyncio.run(scenario())


def test_while_crds_are_read_what_depends_on_none_is_served_and_the_rest_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        settings = Settings(port=0, storage=f"sqlite:{tmp_path}/s.db")
        await fill(settings)
        begun: asyncio.Future[ServerComponents] = asyncio.get_running_loop().create_future()
        gate, over = asyncio.Event(), asyncio.Event()
        begin, follow = ServerComponents.begin, Catalog.follow

        async def noted(machinery: ServerComponents) -> None:
            begun.set_result(machinery)
            await begin(machinery)

        async def gated(self: Catalog, crds: Resource) -> None:
            await gate.wait()
            await follow(self, crds)

        async def serve() -> None:
            async with running(settings):
                await over.wait()

        monkeypatch.setattr(ServerComponents, "begin", noted)
        monkeypatch.setattr(Catalog, "follow", gated)
        task = asyncio.create_task(serve())
        machinery = await asyncio.wait_for(begun, 20)
        await asyncio.sleep(0)
        assert (await asked(machinery, "GET", "/api/v1/namespaces"))[0] == 200
        assert (await asked(machinery, "GET", "/readyz"))[0] == 500
        paths = ("/apis", CRDS, f"{_OTHERS}/o", "/apis/example.com/v1/nothing")
        waiting = [asyncio.create_task(asked(machinery, "GET", path)) for path in paths]
        done, _ = await asyncio.wait(waiting, timeout=0.05)
        assert not done
        gate.set()
        assert [status for status, _ in await asyncio.gather(*waiting)] == [200, 200, 200, 404]
        over.set()
        await task

    asyncio.run(scenario())


def test_loading_many_crds_does_not_hold_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    turns = 0
    take = Catalog._take

    def noted(self: Catalog, entry: CacheEntry) -> None:
        taken.append(turns)
        take(self, entry)

    async def scenario() -> None:
        def turn() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(turn)

        loop = asyncio.get_running_loop()
        settings = Settings(port=0, storage=f"sqlite:{tmp_path}/s.db")
        await fill(settings)
        monkeypatch.setattr(Catalog, "_take", noted)
        monkeypatch.setattr(limits, "TURN_SECONDS", -1.0)
        turn()
        async with running(settings):
            pass

    asyncio.run(scenario())
    assert len(set(taken)) == len(taken) == 2


def test_a_watch_of_before_a_restart_continues_though_its_collection_is_large(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        settings = Settings(port=0, storage=f"sqlite:{tmp_path}/s.db")
        await fill(settings)
        gate = asyncio.Event()
        gate.set()
        async with starting(settings, gate) as machinery:
            await machinery.backend.cache.whole()
            things = machinery.backend.collection("example.com/things/")
            last = [f"default/t{number}" for number in range(_MANY - 3, _MANY)]
            changes = things.changes_after(things.entries[last[0]].revision - 1)
            assert [change.suffix for change in changes] == last

    asyncio.run(scenario())
