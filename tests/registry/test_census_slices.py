"""A large collection is counted and looked through in slices: others have their turn, and what
they write meanwhile is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from instar.base import limits
from instar.server.lifecycle.composition import ServerComponents
from instar.server.lifecycle.lifetime import running
from instar.server.registry.controllers import rewrite_batches
from instar.server.registry.controllers.rewrite_batches import RewriteBatches
from instar.server.registry.insight import census
from instar.server.registry.insight.census import ServerCensus
from tests.support.inside import CRDS, asked, crd, named

_THINGS = "/apis/example.com/v1/namespaces/default/things"
_CRD = "things.example.com"


@asynccontextmanager
async def filled(count: int) -> AsyncIterator[ServerComponents]:
    async with running() as server:
        machinery = server.machinery
        assert (await asked(machinery, "POST", CRDS, crd("things", "Thing")))[0] == 201
        for number in range(count):
            body = named("Thing", f"t{number}")
            assert (await asked(machinery, "POST", _THINGS, body))[0] == 201
        yield machinery


@pytest.fixture(autouse=True)
def tiny_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TURN_SECONDS", -1.0)
    monkeypatch.setattr(census, "_AT_ONCE", 2)
    monkeypatch.setattr(rewrite_batches, "_KEYS_PER_SLICE", 2)


def test_objects_that_change_during_a_census_are_counted() -> None:
    async def scenario() -> None:
        async with filled(9) as machinery:
            counting = ServerCensus(machinery.catalog)
            taking = asyncio.create_task(counting.prepare())
            for _ in range(3):
                await asyncio.sleep(0)
            assert not taking.done()
            for number in (0, 8):
                assert (await asked(machinery, "DELETE", f"{_THINGS}/t{number}"))[0] == 200
            assert (await asked(machinery, "POST", _THINGS, named("Thing", "late")))[0] == 201
            await taking
            assert counting.of_crd(_CRD) == {"v1": 8}

    asyncio.run(scenario())


def test_a_census_without_waiting_returns_the_whole_count() -> None:
    async def scenario() -> None:
        async with filled(5) as machinery:
            counting = ServerCensus(machinery.catalog)
            taking = asyncio.create_task(counting.prepare(_CRD))
            await asyncio.sleep(0)
            assert counting.of_crd(_CRD) == {"v1": 5}
            await taking
            assert counting.of_crd(_CRD) == {"v1": 5}

    asyncio.run(scenario())


def test_the_metrics_wait_for_the_census_and_not_the_loop() -> None:
    async def scenario() -> None:
        async with filled(7) as machinery:
            turns = 0

            def turn() -> None:
                nonlocal turns
                turns += 1
                loop.call_soon(turn)

            loop = asyncio.get_running_loop()
            turn()
            families = await machinery.metrics.counted()
            assert turns > 3
            stored = next(one for one in families if one.name == "instar_stored_objects")
            assert [*stored.series[_CRD, "v1"]] == [7]

    asyncio.run(scenario())


def test_a_migration_is_about_those_that_were_there_when_it_began() -> None:
    async def scenario() -> None:
        async with filled(5) as machinery:
            resource = machinery.catalog.custom(_CRD)
            assert resource is not None
            context = machinery.app._context
            until = machinery.backend.revision
            finding = asyncio.create_task(RewriteBatches.of(context, resource, until))
            await asyncio.sleep(0)
            assert (await asked(machinery, "DELETE", f"{_THINGS}/t0"))[0] == 200
            assert (await asked(machinery, "POST", _THINGS, named("Thing", "late")))[0] == 201
            found = await finding
            assert found.total == len(found.pending)
            assert [f"default/t{number}" for number in (4, 3, 2, 1)] == found.pending

    asyncio.run(scenario())
