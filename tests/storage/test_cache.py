"""The watch cache: the past it can still show is the past as it was."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Compacted, Record, Write
from instar.wire.storage.watchcache import collection
from instar.wire.storage.watchcache.cache import Cache
from instar.wire.storage.watchcache.collection import Collection, WindowLimits

PREFIX = "g.io/things/"


@dataclass(frozen=True)
class Thing:
    value: bytes
    revision: int
    size: int = 1

    def replaced(self) -> None: ...


def ingest(record: Record, suffix: str) -> Thing:
    return Thing(record.value, record.revision)


steps = st.lists(
    st.tuples(st.sampled_from(["a/x", "a/y", "b/x", "c/z"]), st.booleans()), max_size=30
)


@settings(deadline=None)
@given(steps, st.sampled_from(["", "a/", "b/"]))
def test_every_revision_in_the_window_shows_what_was_there(
    changes: list[tuple[str, bool]], below: str
) -> None:
    async def run() -> None:
        store = MemoryStore()
        cache: Cache[Thing] = Cache(store, ingest)
        await cache.start()
        objects = cache.collection(PREFIX)
        past: dict[int, dict[str, bytes]] = {cache.revision: {}}
        state: dict[str, bytes] = {}
        for suffix, delete in changes:
            current = objects.entries.get(suffix)
            expected = current.revision if current is not None else 0
            if delete and current is None:
                continue
            value = None if delete else f"{len(past)}".encode()
            revision = await store.commit(Write(PREFIX + suffix, value, expected))
            if value is None:
                del state[suffix]
            else:
                state[suffix] = value
            past[revision] = dict(state)
        for revision, then in past.items():
            shown = [(k, thing.value) for k, thing in objects.as_of(revision, below)]
            assert shown == sorted((k, v) for k, v in then.items() if k.startswith(below))
        wanted = [state[key] for key in sorted(state) if key.startswith(below)]
        for limit in range(len(wanted) + 2):
            found, more = objects.select(below, limit=limit)
            assert [thing.value for thing in found] == wanted[: limit or None]
            assert len(found) + more == len(wanted)

    asyncio.run(run())


def test_a_full_window_forgets_the_oldest_and_says_so() -> None:
    async def run() -> None:
        store = MemoryStore()
        cache: Cache[Thing] = Cache(store, ingest, WindowLimits(events=2))
        await cache.start()
        revisions = [await store.commit(Write(f"{PREFIX}n{i}", b"v", 0)) for i in range(4)]
        objects = cache.collection(PREFIX)
        assert [c.suffix for c in objects.changes_after(revisions[1])] == ["n2", "n3"]
        with pytest.raises(Compacted):
            objects.changes_after(revisions[0])

    asyncio.run(run())


def test_history_is_lived_through_again_at_start() -> None:
    async def run() -> None:
        store = MemoryStore()
        first = await store.commit(Write(PREFIX + "a", b"1", 0))
        await store.commit(Write(PREFIX + "a", b"2", first))
        cache: Cache[Thing] = Cache(store, ingest)
        await cache.start()
        shown = dict(cache.collection(PREFIX).as_of(first))
        assert shown["a"].value == b"1"

    asyncio.run(run())


def test_a_store_that_went_back_is_followed_from_where_it_is_now() -> None:
    async def run() -> None:
        store, restored = MemoryStore(), MemoryStore()
        cache: Cache[Thing] = Cache(store, ingest)
        await cache.start()
        revision = 0
        for _ in range(5):
            revision = await store.commit(Write(PREFIX + "a", b"1", revision))
        reset = asyncio.Event()
        cache.on_reset(reset.set)
        cache.store = restored
        await store.close()
        await reset.wait()
        await asyncio.sleep(0)
        written = await restored.commit(Write(PREFIX + "b", b"2", 0))
        assert written < revision
        assert await cache.reached(written)
        assert cache.collection(PREFIX).entries == {"b": Thing(b"2", written)}
        assert cache.revision == written
        await cache.stop()

    asyncio.run(run())


def test_an_unreferenced_empty_collection_is_dropped() -> None:
    async def run() -> None:
        store = MemoryStore()
        cache: Cache[Thing] = Cache(store, ingest, WindowLimits(events=1))
        await cache.start()
        first = await store.commit(Write(PREFIX + "a", b"1", 0))
        gone = await store.commit(Write(PREFIX + "a", None, first))
        cache.compacted(first)
        assert [each.prefix for each in cache.collections()] == [PREFIX], "it has a window"
        cache.compacted(gone)
        assert cache.collections() == []
        with pytest.raises(Compacted):
            cache.collection(PREFIX).changes_after(first)

    asyncio.run(run())


def test_a_referenced_empty_collection_receives_changes() -> None:
    async def run() -> None:
        store = MemoryStore()
        cache: Cache[Thing] = Cache(store, ingest)
        await cache.start()
        held = cache.collection(PREFIX)
        cache.compacted(await store.barrier())
        await store.commit(Write(PREFIX + "a", b"1", 0))
        assert list(held.entries) == ["a"]
        assert cache.collection(PREFIX) is held

    asyncio.run(run())


@settings(deadline=None)
@given(steps, st.sampled_from(["", "a/"]), st.integers(1, 3), st.sampled_from(["", "a/y", "b"]))
def test_a_page_of_the_past_tells_how_many_followed_it(
    changes: list[tuple[str, bool]], below: str, limit: int, start: str
) -> None:
    async def run() -> None:
        _, objects, past = await lived(changes)
        for revision, then in past.items():
            wanted = [
                (name, then[name])
                for name in sorted(then)
                if name.startswith(below) and name >= start
            ]
            page, last, more = objects.page_as_of(revision, below, start, limit)
            assert [thing.value for thing in page] == [value for _, value in wanted[:limit]]
            assert last == (wanted[:limit][-1][0] if wanted else "")
            assert more == max(0, len(wanted) - limit)

    asyncio.run(run())


@settings(deadline=None)
@given(steps, steps, st.booleans(), st.sampled_from(["", "a/"]))
def test_slices_show_one_moment_whatever_is_written_while_they_are_taken(
    changes: list[tuple[str, bool]], later: list[tuple[str, bool]], then: bool, below: str
) -> None:
    async def run() -> None:
        store, objects, past = await lived(changes)
        revision = list(past)[len(past) // 2] if then else None
        wanted = past[revision if revision is not None else list(past)[-1]]
        found = []
        coming = iter(later)
        async for part in objects.slices(below, revision=revision):
            found += [(name, thing.value) for name, thing in part]
            for suffix, delete in islice(coming, 3):
                await wrote(store, objects, suffix, delete, b"later")
        assert found == [(name, wanted[name]) for name in sorted(wanted) if name.startswith(below)]
        assert not objects.listeners

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collection, "_SLICE", 1)
        asyncio.run(run())


async def lived(
    changes: list[tuple[str, bool]],
) -> tuple[MemoryStore, Collection[Thing], dict[int, dict[str, bytes]]]:
    """A store, its collection, and what was there at each revision."""
    store = MemoryStore()
    cache: Cache[Thing] = Cache(store, ingest)
    await cache.start()
    objects = cache.collection(PREFIX)
    _held.append(cache)
    past: dict[int, dict[str, bytes]] = {cache.revision: {}}
    for number, (suffix, delete) in enumerate(changes):
        await wrote(store, objects, suffix, delete, f"{number}".encode())
        past[cache.revision] = {name: thing.value for name, thing in objects.entries.items()}
    return store, objects, past


async def wrote(
    store: MemoryStore, objects: Collection[Thing], suffix: str, delete: bool, value: bytes
) -> None:
    current = objects.entries.get(suffix)
    if current is not None or not delete:
        expected = current.revision if current is not None else 0
        await store.commit(Write(PREFIX + suffix, None if delete else value, expected))


_held: list[Cache[Thing]] = []
"""A cache lives as long as somebody holds it."""
