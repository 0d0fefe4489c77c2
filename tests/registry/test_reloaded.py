"""What takes many turns, when the cache is read anew or an object cannot be read meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from instar.base.errors import ServiceUnavailable
from instar.base.supervision import Supervision
from instar.kube.api.selectors import parse_label_selector
from instar.server.lifecycle.lifetime import running
from instar.server.registry.controllers import leadership
from instar.server.registry.controllers.garbage.graph import OwnerGraph
from instar.server.registry.controllers.leadership import Leadership, StoreSharing
from instar.server.registry.stored import label_index
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry
from instar.server.registry.stored.label_index import LabelIndex
from instar.server.registry.verbs import read
from instar.server.settings import Settings
from instar.wire.storage.store import Unavailable
from instar.wire.storage.watchcache import collection
from instar.wire.storage.watchcache.collection import Collection, CollectionReloaded, WindowLimits
from tests.support.inside import CRDS, asked, crd, named

pytestmark = pytest.mark.anyio
_THINGS = "/apis/example.com/v1/namespaces/default/things"


class Broken(InMemoryEntry):
    """One whose labels lie where they cannot be read just now."""

    broken = True

    @property
    def labels(self) -> dict[str, str]:
        if self.broken:
            raise ServiceUnavailable("the disk does not answer")
        return {"a": "b"}


def objects_of(*entries: CacheEntry) -> Collection[CacheEntry]:
    objects: Collection[CacheEntry] = Collection("things/", 0, WindowLimits())
    objects.load({entry.suffix: entry for entry in entries}, 1)
    return objects


def held(name: str) -> InMemoryEntry:
    return InMemoryEntry(b'{"metadata":{"labels":{"a":"b"},"uid":"1"}}', 1, name)


async def test_iterating_slices_raises_after_a_reload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collection, "_SLICE", 2)
    objects = objects_of(*map(held, "abcde"))
    slices = objects.slices()
    assert [name for name, _ in await anext(slices)] == ["a", "b"]

    objects.load({"a": held("a")}, 2)

    with pytest.raises(CollectionReloaded):
        await anext(slices)
    assert not objects.listeners


@pytest.mark.parametrize("at_once", [0, 100])
async def test_a_label_index_that_could_not_be_made_is_an_error_and_is_made_again(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(label_index, "_OBJECTS_PER_TURN", at_once)
    broken = Broken(b"", 1, "b")
    index = LabelIndex(objects_of(held("a"), broken, held("c")))
    for _ in range(2):
        with pytest.raises(ServiceUnavailable):
            await index.built()

    broken.broken = False
    await index.built()

    monkeypatch.setattr(label_index, "_OBJECTS_PER_TURN", 100)
    selector = parse_label_selector("a=b")
    assert selector is not None
    assert index.matching(selector) == ["a", "b", "c"]


async def test_a_waiter_for_a_label_index_resumes_when_the_resource_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(label_index, "_OBJECTS_PER_TURN", 0)
    index = LabelIndex(objects_of(held("a")))
    waiting = asyncio.create_task(index.built())
    await asyncio.sleep(0)

    index.close()

    await asyncio.wait_for(waiting, 5)


async def test_a_long_list_during_a_cache_reload_gets_a_retry_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read, "_AT_ONCE", 2)

    async def reloaded(self: Any, below: str = "") -> list[CacheEntry]:
        raise CollectionReloaded

    async with running(Settings(port=0, storage="memory:")) as server:
        machinery = server.machinery
        assert (await asked(machinery, "POST", CRDS, crd("things", "Thing")))[0] == 201
        for number in range(4):
            assert (await asked(machinery, "POST", _THINGS, named("Thing", f"t{number}")))[0] == 201
        monkeypatch.setattr(Collection, "gather", reloaded)

        status, body = await asked(machinery, "GET", _THINGS)

    assert (status, body["reason"], body["details"]["retryAfterSeconds"]) == (
        503,
        "ServiceUnavailable",
        1,
    )


async def test_a_server_whose_controllers_cannot_begin_does_not_lead_until_they_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: asyncio.Queue[bool] = asyncio.Queue()
    failures = [Unavailable("gone"), ServiceUnavailable("gone")]

    async def elected() -> None:
        begun.put_nowait(not failures)
        if failures:
            raise failures.pop()

    async def held_by_us(self: Leadership) -> bool:
        return True

    monkeypatch.setattr(leadership, "_RENEW_SECONDS", 0.0)
    monkeypatch.setattr(Leadership, "_hold", held_by_us)
    context = SimpleNamespace(supervision=Supervision())
    ours = Leadership(cast(Any, context), cast(Any, None), "me", company=StoreSharing.EQUALS)
    ours.on_elected(elected)

    await ours.start()

    assert [await asyncio.wait_for(begun.get(), 5) for _ in range(3)] == [False, False, True]
    await asyncio.sleep(0)
    assert ours.leads
    await ours.stop()


async def test_owners_that_could_not_be_read_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("instar.server.registry.controllers.garbage.graph._AGAIN_SECONDS", 0.0)
    looked: asyncio.Queue[bool] = asyncio.Queue()
    failures = [Unavailable("gone")]
    context = SimpleNamespace(supervision=Supervision())
    graph = OwnerGraph(cast(Any, context), cast(Any, None), lambda node: None)

    async def look() -> None:
        looked.put_nowait(not failures)
        if failures:
            raise failures.pop()

    monkeypatch.setattr(graph, "look_at_all", cast(Callable[[], Awaitable[None]], look))

    graph.start_over()

    assert [await asyncio.wait_for(looked.get(), 5) for _ in range(2)] == [False, True]
    await graph.stop()
