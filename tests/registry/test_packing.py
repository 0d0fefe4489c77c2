"""Packed values: whatever is written, packed, trained anew or read again, readers get the bytes
that were stored."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from collections.abc import Awaitable, Callable, Iterator

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.base.supervision import FAILURES
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry, UnreadableEntry, ingest
from instar.server.registry.stored.label_index import LabelIndex
from instar.server.registry.stored.packing import collection_packing, packer
from instar.server.registry.stored.packing.packed_entry import HotValues, PackedEntry, unpacked_all
from instar.server.registry.stored.packing.packer import Packer
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Write
from instar.wire.storage.value_dictionary import ValueDictionary
from tests.support.packing import pack_small_collections, packing
from tests.support.waiting import eventually

PREFIX = "example.com/things/"
_MANY = 40


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        pack_small_collections(patch)
        yield


def stored(name: str, seed: int = 0, family: str = "image", version: str = "v1") -> bytes:
    """An object as the server stores it; those of one family look alike."""
    chance = random.Random(f"{family}{seed}")
    known = [random.Random(f"{family}{word}").randbytes(9).hex() for word in range(50)]
    words = [chance.choice(known) for _ in range(30)]
    metadata = {"labels": {"family": family}, "name": name, "namespace": "d", "uid": f"u-{seed}"}
    obj = {"apiVersion": f"example.com/{version}", "kind": "Thing", "metadata": metadata}
    return orjson.dumps({**obj, "spec": {"words": words}}, option=orjson.OPT_SORT_KEYS) + b"\n"


async def write(backend: Backend, name: str, value: bytes | None) -> None:
    found = backend.cache.entry(f"{PREFIX}d/{name}")
    expected = 0 if found is None else found.revision
    revision = await backend.store.commit(Write(f"{PREFIX}d/{name}", value, expected))
    await backend.cache.reached(revision)


async def filled(backend: Backend, count: int = _MANY) -> Backend:
    await backend.start()
    for number in range(count):
        await write(backend, f"t{number:03d}", stored(f"t{number:03d}", number))
    return backend


def entries_of(backend: Backend) -> dict[str, CacheEntry]:
    return backend.collection(PREFIX).entries


def all_packed(backend: Backend) -> bool:
    return {type(entry) for entry in entries_of(backend).values()} == {PackedEntry}


def with_packed(play: Callable[[Backend, Packer], Awaitable[None]], count: int = _MANY) -> None:
    """Play on a backend with packed objects."""

    async def run() -> None:
        made = Packer()
        backend = await filled(Backend(MemoryStore(), packer=made), count)
        await made.sweep(backend.cache)
        await play(backend, made)
        await backend.stop()

    asyncio.run(run())


async def shows_what_is_stored(backend: Backend) -> None:
    """The cache has the objects of the store, by every way to read them."""
    page = await backend.store.range(PREFIX)
    held = {
        each.key.removeprefix(PREFIX): ingest(each, each.key.removeprefix(PREFIX))
        for each in page.records
    }
    found = entries_of(backend)
    assert found.keys() == held.keys()
    for suffix, entry in found.items():
        other = held[suffix]
        assert (entry.view, entry.stored(), entry.revision) == (
            other.view,
            other.stored(),
            other.revision,
        )
        assert (entry.labels, entry.api_version) == (other.labels, other.api_version)
        assert (entry.decode(), entry.content()) == (other.decode(), other.content())
        assert entry.size == len(other.view)
    items = [e if isinstance(e, PackedEntry) else e.view for e in found.values()]
    assert unpacked_all(items) == [held[suffix].view for suffix in found]


_names = st.sampled_from([f"t{number:03d}" for number in range(0, 60, 7)])
_families = st.sampled_from(["image", "route", "report"])
_steps = st.one_of(
    st.tuples(st.just("write"), _names, _families, st.sampled_from(["v1", "v2"])),
    st.tuples(st.just("delete"), _names),
    st.tuples(st.sampled_from(["pack", "train", "compact", "reload", "restart", "many", "read"])),
)


@settings(deadline=None, max_examples=25)
@given(st.lists(_steps, max_size=14))
def test_readers_get_what_was_stored_whatever_happens(steps: list[tuple[str, ...]]) -> None:
    async def run() -> None:
        store = MemoryStore()
        backend = await filled(Backend(store, packer=Packer()))
        seed = _MANY
        for step in steps:
            made = backend.packer
            assert made is not None
            seed += 1
            match step:
                case ("write", name, family, version):
                    await write(backend, name, stored(name, seed, family, version))
                case ("delete", name) if f"d/{name}" in entries_of(backend):
                    await write(backend, name, None)
                case ("pack",):
                    await made.sweep(backend.cache)
                case ("train",):
                    for each in made._packings.values():
                        each._ratio = 1e9  # whatever it was, later values pack worse
                case ("many",):
                    for number in range(30):
                        await write(backend, f"m{number}", stored(f"m{number}", seed, "metrics"))
                case ("compact",):
                    await store.compact(backend.revision)
                    backend.cache.compacted(backend.revision)
                case ("reload",):
                    page = await store.range("")
                    backend.cache._load(page.records, page.revision)
                case ("restart",):
                    await backend.cache.stop()
                    backend = Backend(store, packer=Packer())
                    assert backend.packer is not None
                    async with packing(backend):
                        await backend.start()
                case ("read",):
                    await shows_what_is_stored(backend)
        await shows_what_is_stored(backend)
        await backend.stop()

    asyncio.run(run())


def test_objects_of_a_large_collection_are_packed_and_take_a_fraction() -> None:
    async def play(backend: Backend, made: Packer) -> None:
        assert all_packed(backend)
        entries = entries_of(backend).values()
        packed = sum(len(entry.packed) for entry in entries if isinstance(entry, PackedEntry))
        assert packed < sum(entry.size for entry in entries) / 2
        await shows_what_is_stored(backend)

    with_packed(play)


def test_a_small_collection_stays_as_it_is() -> None:
    async def play(backend: Backend, made: Packer) -> None:
        assert {type(entry) for entry in entries_of(backend).values()} == {InMemoryEntry}

    with_packed(play, count=19)


def test_values_with_nothing_in_common_stay_as_they_are() -> None:
    async def run() -> None:
        made = Packer()
        backend = Backend(MemoryStore(), packer=made)
        await backend.start()
        chance = random.Random(1)
        for number in range(_MANY):
            obj = orjson.loads(stored(f"t{number}", number))
            obj["spec"] = {"key": chance.randbytes(3000).hex()[:3000]}
            value = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS) + b"\n"
            await write(
                backend, f"t{number}", value.replace(b"Thing", chance.randbytes(2).hex().encode())
            )
        await made.sweep(backend.cache)
        for entry in entries_of(backend).values():
            if isinstance(entry, PackedEntry):
                assert len(entry.packed) * collection_packing.LEAST_RATIO < entry.size
        await shows_what_is_stored(backend)
        await backend.stop()

    asyncio.run(run())


def test_a_written_object_is_held_until_the_next_round() -> None:
    async def play(backend: Backend, made: Packer) -> None:
        await write(backend, "t003", stored("t003", 77))
        assert isinstance(entries_of(backend)["d/t003"], InMemoryEntry)

        await made.sweep(backend.cache)

        assert all_packed(backend)
        await shows_what_is_stored(backend)

    with_packed(play)


def test_the_window_of_changes_holds_packed_objects_too() -> None:
    async def play(backend: Backend, made: Packer) -> None:
        for seed in (70, 71, 72):
            await write(backend, "t003", stored("t003", seed))
        before = [
            tuple(None if each is None else each.view for each in (change.new, change.old))
            for change in backend.collection(PREFIX).changes_after(0)
        ]

        await made.sweep(backend.cache)

        changes = backend.collection(PREFIX).changes_after(0)
        sides = [side for change in changes for side in (change.new, change.old) if side]
        assert {type(side) for side in sides} == {PackedEntry}
        assert before == [
            tuple(None if each is None else each.view for each in (change.new, change.old))
            for change in changes
        ]

    with_packed(play)


def test_later_values_that_pack_worse_get_a_dictionary_of_their_own() -> None:
    async def play(backend: Backend, made: Packer) -> None:
        first = made._packings[PREFIX].dictionary
        for number in range(4 * _MANY):
            value = stored(f"r{number}", number, "entirely-different-route")
            await write(backend, f"r{number}", value)
        await made.sweep(backend.cache)
        await write(backend, "r0", stored("r0", 1, "entirely-different-route"))
        await made.sweep(backend.cache)

        second = made._packings[PREFIX].dictionary
        assert second is not first
        used = {
            e.kind.dictionary for e in entries_of(backend).values() if isinstance(e, PackedEntry)
        }
        assert used == {second}
        await shows_what_is_stored(backend)

    with_packed(play)


def test_a_dictionary_is_dropped_with_the_last_value_that_uses_it() -> None:
    class Watched(ValueDictionary):
        __slots__ = ("__weakref__",)

    async def play(backend: Backend, made: Packer) -> None:
        [dictionary] = {
            e.kind.dictionary for e in entries_of(backend).values() if isinstance(e, PackedEntry)
        }
        gone = weakref.ref(dictionary)
        del dictionary
        for suffix in list(entries_of(backend)):
            await write(backend, suffix.removeprefix("d/"), None)
        backend.cache.compacted(backend.revision)
        await made.sweep(backend.cache)
        gc.collect()
        eventually(lambda: gone() is None)  # the thread that trained it may hold it a moment

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("instar.wire.storage.value_dictionary.ValueDictionary", Watched)
        with_packed(play)


@pytest.mark.parametrize("very_large", [True, False])
def test_objects_of_a_very_large_collection_only_are_packed_while_they_are_loaded(
    very_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        store = MemoryStore()
        first = await filled(Backend(store))
        await first.cache.stop()
        backend = Backend(store, packer=Packer())
        async with packing(backend) as made:
            page = await store.range("")
            expected = sum(len(record.value) for record in page.records)
            limit = expected // 2 if very_large else expected * 2
            monkeypatch.setattr(collection_packing, "WHILE_LOADING_BYTES", limit)
            for record in page.records[:30]:
                made.of_loaded(record, record.key.removeprefix(PREFIX))
            await made._train_loaded()

            entry = made.of_loaded(page.records[30], page.records[30].key.removeprefix(PREFIX))

            assert isinstance(entry, PackedEntry) == very_large
            assert entry.stored() + b"\n" == page.records[30].value
        await first.store.close()

    asyncio.run(run())


def test_a_frame_that_cannot_be_unpacked_names_the_object() -> None:
    async def play(backend: Backend, made: Packer) -> None:
        entry = entries_of(backend)["d/t005"]
        assert isinstance(entry, PackedEntry)
        entry.packed = entry.packed[:-3]
        for read in (entry.load, entry.decode, entry.stored, lambda: entry.view):
            with pytest.raises(UnreadableEntry, match="the packed value of d/t005 cannot be read"):
                read()
        others = [each for each in entries_of(backend).values() if isinstance(each, PackedEntry)]
        with pytest.raises(UnreadableEntry, match="d/t005"):
            unpacked_all(others)

    with_packed(play)


def test_a_collection_that_cannot_be_packed_is_counted_and_the_others_are_packed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        made = Packer()
        backend = await filled(Backend(MemoryStore(), packer=made))
        failures = FAILURES.value(("packing",))

        def fails(*_: object) -> None:
            raise RuntimeError("out of luck")

        monkeypatch.setattr(packer, "trained", fails)
        await made.sweep(backend.cache)
        assert FAILURES.value(("packing",)) == failures + 1
        await shows_what_is_stored(backend)

        monkeypatch.setattr(packer, "trained", collection_packing.trained)
        await made.sweep(backend.cache)

        assert all_packed(backend)
        await backend.stop()

    asyncio.run(run())


def test_without_the_library_nothing_is_packed_and_the_part_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(*_: object) -> None:
        raise ImportError("No module named 'zstandard'")

    async def run() -> None:
        made = Packer()
        backend = await filled(Backend(MemoryStore(), packer=made))
        monkeypatch.setattr(packer, "trained", missing)
        monkeypatch.setattr(packer, "EVERY_SECONDS", 0.0)
        await made.run(backend.cache)
        await shows_what_is_stored(backend)
        await backend.stop()

    asyncio.run(run())
    assert "values are not packed in memory, a library is missing" in caplog.text


def test_an_index_of_labels_finds_objects_that_are_packed_while_it_is_built() -> None:
    async def play(backend: Backend, made: Packer) -> None:
        index = LabelIndex(backend.collection(PREFIX))
        building = asyncio.create_task(index._build())
        for suffix, entry in list(entries_of(backend).items()):
            entries_of(backend)[suffix] = entry.load()
        await building
        assert len(index._carriers["family", "image"]) == _MANY

    with_packed(play)


def test_read_objects_stay_unpacked_within_a_budget() -> None:
    async def play(backend: Backend, made: Packer) -> None:
        entries = [e for e in entries_of(backend).values() if isinstance(e, PackedEntry)]
        hot = HotValues(most=10 * entries[0].size)
        for entry in entries:
            entry.kind = entry.kind._replace(hot=hot)

        assert entries[0].load() is entries[0].load()
        for entry in entries:
            entry.load()

        assert 0 < len(hot) <= 11

    with_packed(play)
