"""A page that is asked for again while nothing has changed is put together once."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from instar.server.lifecycle.composition import ServerComponents
from instar.server.lifecycle.lifetime import running
from instar.server.registry.stored.page_cache import CachedPage, PageCache, PageKey
from instar.server.registry.stored.views import Views
from instar.server.settings import Settings
from instar.wire.storage.workers.arena import Arena, make_file
from instar.wire.storage.workers.arena_reclaim import Reclaimer
from tests.support.inside import CRDS, asked, crd, named

pytestmark = pytest.mark.anyio
_THINGS = "/apis/example.com/v1/namespaces/default/things"
_OTHER = _THINGS.replace("/v1/", "/v2/")
_MERGE = "application/merge-patch+json"


def key(number: int = 0) -> PageKey:
    return PageKey("serving", "v1", "default/", str(number), 500)


def page(size: int = 1000, lasting: bool = True) -> CachedPage:
    return CachedPage(Views([b"x" * size], size=size, lasting=lasting), "", 0)


def test_a_page_is_cached_from_its_second_request_on() -> None:
    pages, state = PageCache(), object()
    pages.add(key(), state, page())
    assert pages.find(key(), state) is None
    kept = page()
    pages.add(key(), state, kept)

    assert pages.find(key(), state) is kept
    assert list(kept.views.pieces(100)) == list(kept.views.pieces(100))


def test_a_page_of_another_state_is_not_found_and_not_kept_any_longer() -> None:
    pages, state = PageCache(), object()
    for _ in range(2):
        pages.add(key(), state, page())

    assert pages.find(key(), object()) is None
    assert pages.weight == 0


def test_cached_pages_are_bounded_and_the_least_recently_used_is_evicted() -> None:
    pages, state = PageCache(most=11_000), object()
    for number in range(10):
        for _ in range(2):
            pages.add(key(number), state, page(1000))

    assert 10_000 < pages.weight <= 11_000
    assert pages.find(key(0), state) is None
    assert pages.find(key(9), state) is not None


def test_small_pages_of_long_tokens_weigh_as_much_as_their_tokens() -> None:
    pages, state = PageCache(most=100_000), object()
    keys = [key()._replace(first="a" * 10_000 + str(number)) for number in range(100)]
    for one in keys:
        for _ in range(2):
            pages.add(one, state, page(10))

    assert 0 < sum(pages.find(one, state) is not None for one in keys) < 10


@pytest.mark.parametrize("given", [page(2 << 20), page(lasting=False)], ids=["large", "converted"])
def test_a_large_page_and_one_that_may_look_different_next_time_are_not_kept(
    given: CachedPage,
) -> None:
    pages, state = PageCache(), object()
    for _ in range(3):
        pages.add(key(), state, given)

    assert pages.find(key(), state) is None


async def filled(machinery: ServerComponents, **schema: Any) -> None:
    await asked(machinery, "POST", CRDS, crd("things", "Thing", other=True, **schema))
    for number in range(5):
        await asked(machinery, "POST", _THINGS, named("Thing", f"t{number}") | {"n": "old"})


async def listed(
    machinery: ServerComponents, path: str = _THINGS, **query: str
) -> list[dict[str, Any]]:
    """Asked four times, so that it is kept if it can be; all four are the same."""
    answers = [await asked(machinery, "GET", path, **query) for _ in range(4)]
    assert [status for status, _ in answers] == [200] * 4
    assert all(answer == answers[0] for answer in answers)
    found: list[dict[str, Any]] = answers[0][1]["items"]
    return found


@pytest.mark.parametrize("shared", [False, True], ids=["own memory", "shared memory"])
async def test_every_write_is_seen_in_a_page_that_was_kept(shared: bool) -> None:
    loans = Reclaimer(Arena(make_file())) if shared else None
    async with running(Settings(port=0, loans=loans)) as server:
        machinery = server.machinery
        await filled(machinery)
        assert [item["n"] for item in await listed(machinery, limit="3")] == ["old"] * 3
        assert machinery.backend.pages.weight > 0
        await asked(machinery, "PATCH", f"{_THINGS}/t1", {"n": "new"}, content=_MERGE)
        assert [item["n"] for item in await listed(machinery, limit="3")] == ["old", "new", "old"]
        await asked(machinery, "DELETE", f"{_THINGS}/t0")
        names = [item["metadata"]["name"] for item in await listed(machinery, limit="3")]

        assert names == ["t1", "t2", "t3"]


async def test_pages_are_cached_per_version_namespace_and_position() -> None:
    async with running(Settings(port=0)) as server:
        machinery = server.machinery
        await filled(machinery)
        assert {item["apiVersion"] for item in await listed(machinery)} == {"example.com/v1"}
        assert {item["apiVersion"] for item in await listed(machinery, _OTHER)} == {
            "example.com/v2"
        }
        assert await listed(machinery, _THINGS.replace("default", "kube-system")) == []
        _, first = await asked(machinery, "GET", _THINGS, limit="2")
        token = first["metadata"]["continue"]
        rest = await listed(machinery, **{"limit": "2", "continue": token})

        assert [item["metadata"]["name"] for item in rest] == ["t2", "t3"]


async def test_the_revision_of_a_kept_page_is_that_of_the_moment_it_is_sent() -> None:
    async with running(Settings(port=0)) as server:
        machinery = server.machinery
        await filled(machinery)
        await listed(machinery, limit="2")
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}
        await asked(machinery, "POST", "/api/v1/namespaces", space)
        _, told = await asked(machinery, "GET", _THINGS, limit="2")

        assert int(told["metadata"]["resourceVersion"]) == machinery.backend.revision


async def test_a_kept_page_is_not_shown_by_a_schema_that_is_not_valid_any_more() -> None:
    text = {"type": "object", "properties": {"n": {"type": "string"}}}
    async with running(Settings(port=0)) as server:
        machinery = server.machinery
        await filled(machinery, schema=text)
        assert all("n" in item for item in await listed(machinery))
        changed = crd("things", "Thing", {"type": "object"}, other=True)
        _, old = await asked(machinery, "GET", f"{CRDS}/things.example.com")
        changed["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        await asked(machinery, "PUT", f"{CRDS}/things.example.com", changed)

        assert not any("n" in item for item in await listed(machinery))


@pytest.mark.parametrize("shared", [False, True], ids=["own memory", "shared memory"])
async def test_the_schemas_of_a_crd_that_is_gone_do_not_stay_with_its_pages(shared: bool) -> None:
    loans = Reclaimer(Arena(make_file())) if shared else None
    async with running(Settings(port=0, loans=loans)) as server:
        machinery = server.machinery
        await filled(machinery)
        await listed(machinery)
        resource = machinery.catalog.custom("things.example.com")
        assert resource is not None
        serving, gone = weakref.ref(resource.serving), asyncio.Event()
        machinery.catalog.on_closed(lambda resource: gone.set())
        del resource
        await asked(machinery, "DELETE", f"{CRDS}/things.example.com")
        await asyncio.wait_for(gone.wait(), 30)
        await asked(machinery, "GET", "/api/v1/namespaces")
        gc.collect()

        assert serving() is None
