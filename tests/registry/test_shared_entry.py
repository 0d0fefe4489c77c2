"""Objects in memory that processes share: everybody shows what was written, wherever it lies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from instar.base.errors import ServiceUnavailable
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry
from instar.server.registry.stored.shared_entry import (
    BorrowedEntry,
    OwnedEntry,
    SharedViews,
    views_of,
)
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Unavailable, Write
from instar.wire.storage.watchcache import cache as cache_module
from instar.wire.storage.watchcache.collection import Change
from instar.wire.storage.workers import arena as arena_module
from instar.wire.storage.workers import arena_reclaim, store_server
from instar.wire.storage.workers import worker_store as peer_module
from instar.wire.storage.workers.arena import Arena, make_file
from instar.wire.storage.workers.arena_reclaim import ArenaReference, Reclaimer
from instar.wire.storage.workers.store_server import SharedMemoryStore, StoreServer
from instar.wire.storage.workers.worker_store import BorrowedStore, PeerStore

SMALL = 16 << 10
PREFIX = "example.com/things/"


class Shared(NamedTuple):
    """The process that owns the store, and another one; both are in this one."""

    owner: Backend
    worker: Backend
    loans: Reclaimer
    lender: StoreServer


@pytest.fixture
def loans() -> Iterator[Reclaimer]:
    file = make_file()
    yield Reclaimer(Arena(file))
    os.close(file)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are small and looked after all the time."""
    monkeypatch.setattr(arena_module, "SEGMENT", SMALL)
    monkeypatch.setattr(arena_module, "LARGEST", SMALL // 2)
    monkeypatch.setattr(arena_reclaim, "MOVED_AT_ONCE", 5)
    monkeypatch.setattr(store_server, "_SETTLE_SECONDS", 0)


@contextlib.asynccontextmanager
async def sharing(loans: Reclaimer, folder: Path) -> AsyncIterator[Shared]:
    owner = Backend(MemoryStore(), loans=loans)
    await owner.start()
    assert owner.worker_feed is not None
    lender = StoreServer(owner.store, folder, SharedMemoryStore(loans, owner.worker_feed))
    await lender.start()
    worker = await borrowing(folder)
    yield Shared(owner, worker, loans, lender)
    await worker.stop()
    await lender.close()
    await owner.stop()


async def borrowing(folder: Path) -> Backend:
    worker = Backend(await PeerStore.connect(folder))
    await worker.start()
    return worker


def value_of(name: str, size: int = 10, uid: str = "u-1") -> bytes:
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"labels": {"name": name}, "name": name, "uid": uid},
        "spec": "x" * size,
    }
    return orjson.dumps(obj)


async def put(backend: Backend, name: str, size: int = 10) -> CacheEntry:
    objects = backend.collection(PREFIX)
    known = objects.entries.get(name)
    entry = InMemoryEntry(value_of(name, size), 0, name)
    entry.know(api_version="example.com/v1", labels={"name": name})
    return await backend.put(objects, entry, 0 if known is None else known.revision)


def shown(backend: Backend) -> dict[str, bytes]:
    return {name: entry.view for name, entry in backend.collection(PREFIX).entries.items()}


def expected(name: str, size: int, revision: int) -> bytes:
    whole = value_of(name, size)
    at = whole.index(b'"uid"')
    return whole[:at] + b'"resourceVersion":"%d",' % revision + whole[at:]


def test_owner_and_worker_show_an_object_and_hold_no_bytes(
    loans: Reclaimer, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, worker, _, _):
            here, there = await put(owner, "here"), await put(worker, "there")
            await owner.consistent()
            await worker.consistent()

            for backend, kind in ((owner, OwnedEntry), (worker, BorrowedEntry)):
                entries = backend.collection(PREFIX).entries
                assert {type(entry) for entry in entries.values()} == {kind}
                assert shown(backend) == {
                    "here": expected("here", 10, here.revision),
                    "there": expected("there", 10, there.revision),
                }
                assert entries["here"].labels == {"name": "here"}
                assert entries["here"].stored() == value_of("here")
                assert entries["here"].api_version == "example.com/v1"
                assert "resourceVersion" not in entries["there"].content()["metadata"]
                assert [*views_of([*entries.values()])] == [*shown(backend).values()]

    asyncio.run(scenario())


def test_entries_from_before_the_worker_are_shared_too(loans: Reclaimer, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, _, _, _):
            await put(owner, "early", 100)
            late = await borrowing(tmp_path)

            assert type(late.collection(PREFIX).entries["early"]) is BorrowedEntry
            assert shown(late) == shown(owner)
            await late.stop()

    asyncio.run(scenario())


def test_a_worker_loads_without_store_reads_and_has_the_history(
    loans: Reclaimer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*asked: object, **more: object) -> None:
        raise AssertionError("the store was asked")

    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, _, _, _):
            for number in range(12):
                await put(owner, f"n{number % 4}", 10 * number)
            await owner.remove(owner.collection(PREFIX), "n1", owner.revision - 2)
            monkeypatch.setattr(cache_module, "_REPLAYED_REVISIONS", 6)
            monkeypatch.setattr(peer_module, "_PLACES", 3)
            monkeypatch.setattr(owner.store, "range", refused)
            monkeypatch.setattr(owner.store, "subscribe", refused)

            late = await borrowing(tmp_path)

            assert shown(late) == shown(owner)
            here, there = owner.collection(PREFIX), late.collection(PREFIX)
            since = owner.revision - 6
            assert there.complete_since == since
            assert told(there.changes_after(since)) == told(here.changes_after(since))
            await late.stop()

    asyncio.run(scenario())


def test_a_worker_takes_the_window_that_the_owner_has(loans: Reclaimer, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, _, _, _):
            for number in range(6):
                await put(owner, "n", number)
            owner.cache.compacted(owner.revision - 2)

            late = await borrowing(tmp_path)

            assert late.collection(PREFIX).complete_since == owner.revision - 2
            assert shown(late) == shown(owner)
            await late.stop()

    asyncio.run(scenario())


def test_a_worker_reloads_after_the_owner_reloaded(loans: Reclaimer, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, worker, _, _):
            await put(owner, "a", 10)
            await worker.consistent()
            anew = asyncio.Event()
            worker.cache.on_reset(anew.set)

            owner.cache._on_ended(Unavailable("gone for a moment"))
            await asyncio.wait_for(anew.wait(), 30)
            await put(worker, "b", 20)

            assert {type(each) for each in worker.collection(PREFIX).entries.values()} == {
                BorrowedEntry
            }
            assert shown(worker) == shown(owner)

    asyncio.run(scenario())


def told(changes: Sequence[Change[CacheEntry]]) -> list[tuple[object, ...]]:
    return [(at, name, new and new.view, old and old.view) for at, name, new, old in changes]


def test_an_overwritten_value_stays_for_its_readers(loans: Reclaimer, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, worker, _, _):
            first = await put(worker, "a", 10)
            await owner.consistent()
            entries = [each.collection(PREFIX).entries["a"] for each in (owner, worker)]
            second = await put(worker, "a", 20)
            await worker.remove(worker.collection(PREFIX), "a", second.revision)
            await owner.consistent()

            for entry, backend in zip(entries, (owner, worker), strict=True):
                assert entry.view == expected("a", 10, first.revision)
                window = [change.old for change in backend.collection(PREFIX).window]
                assert [old.view for old in window if old is not None] == [
                    expected("a", 10, first.revision),
                    expected("a", 20, second.revision),
                ]
            loans.settle([])
            assert loans.arena.live == 0

    asyncio.run(scenario())


@pytest.mark.usefixtures("often")
def test_all_processes_show_writes_while_values_move(loans: Reclaimer, tmp_path: Path) -> None:
    chance = random.Random(7)

    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, worker, _, _):
            wanted: dict[str, bytes] = {}
            for turn in range(1500):
                name, backend = f"n{chance.randrange(40)}", chance.choice((owner, worker))
                await backend.consistent()
                objects = backend.collection(PREFIX)
                if name in wanted and chance.random() < 0.3:
                    await backend.remove(objects, name, objects.entries[name].revision)
                    del wanted[name]
                else:
                    size = chance.randrange(SMALL // 4)
                    revision = (await put(backend, name, size)).revision
                    wanted[name] = expected(name, size, revision)
                if turn % 20 == 0:
                    for each in (owner, worker):
                        await each.consistent()
                        assert shown(each) == wanted
            for _ in range(200):
                await asyncio.sleep(0.001)
            assert shown(owner) == shown(worker) == wanted
            assert loans.fences > 20
            assert loans.arena.used <= loans.arena.live * 1.5 + 3 * SMALL

    asyncio.run(scenario())


@pytest.mark.usefixtures("often")
def test_no_value_moves_while_a_worker_loads(loans: Reclaimer, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, _, _, _):
            for number in range(40):
                await put(owner, f"n{number}", 1000)
            slow = await PeerStore.connect(tmp_path)
            assert isinstance(slow, BorrowedStore)
            page = await slow.state()
            for number in range(1, 40):
                await put(owner, f"n{number}", 1000)
            for _ in range(100):
                await asyncio.sleep(0.001)
            fences = loans.fences

            values = [item.value for item in page.records]
            places = [value.place for value in values if isinstance(value, ArenaReference)]
            kept = slow.arena.read_many(places, slow.arena.fence)
            names = [orjson.loads(view)["metadata"]["name"] for view in kept]
            await slow.close()
            for _ in range(100):
                await asyncio.sleep(0.001)

            assert names == sorted(f"n{number}" for number in range(40))
            assert fences == 0
            assert loans.fences > 0

    asyncio.run(scenario())


@pytest.mark.usefixtures("often")
def test_a_disconnected_worker_reads_no_foreign_bytes(loans: Reclaimer, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, worker, _, lender):
            for number in range(40):
                await put(owner, f"n{number}", 1000)
            await worker.consistent()
            store = worker.store
            assert isinstance(store, BorrowedStore)
            store._frames._received = lambda head, body: None  # it hears nothing any more
            for peer in tuple(lender._peers):
                peer.close()
            for _ in range(3):
                for number in range(40):
                    await put(owner, f"n{number}", 1000)
                    await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0.001)

            for entry in worker.collection(PREFIX).entries.values():
                with pytest.raises(ServiceUnavailable):
                    entry.load()

    asyncio.run(scenario())


@pytest.mark.usefixtures("often")
def test_a_long_list_is_what_was_there_when_it_began(loans: Reclaimer, tmp_path: Path) -> None:
    """Though it is read piece by piece, while values move and are written over."""

    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, worker, _, _):
            for number in range(40):
                await put(owner, f"n{number}", 500)
            await worker.consistent()
            for backend in (owner, worker):
                wanted = [*shown(backend).values()]
                entries = [*backend.collection(PREFIX).entries.values()]
                views = SharedViews(entries)
                for start in range(0, 40, 7):
                    views.add(entries[start : start + 7])
                assert views.size == sum(map(len, wanted))

                pieces = []
                for piece in views.pieces(2000):
                    pieces.append(piece)
                    for number in range(0, 40, 3):
                        await put(backend, f"n{number}", 700)
                    await asyncio.sleep(0.005)

                assert b"".join(pieces) == b",".join(wanted)
                assert len(pieces) > 5
                assert [*views] == wanted
            assert loans.fences > 0

    asyncio.run(scenario())


def test_foreign_bytes_are_shown_but_not_shared(loans: Reclaimer, tmp_path: Path) -> None:
    foreign = b'{"metadata":{"resourceVersion":"1","name":"f","uid":"u"},"apiVersion":"v1"}'

    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, worker, _, _):
            await owner.store.commit(Write(f"{PREFIX}f", foreign, 0))
            await owner.store.commit(Write(f"{PREFIX}g", b"no JSON", 0))
            await worker.consistent()

            kinds = {type(entry) for entry in worker.collection(PREFIX).entries.values()}
            assert kinds == {InMemoryEntry}
            assert worker.collection(PREFIX).entries["f"].decode() == (
                owner.collection(PREFIX).entries["f"].decode()
            )

    asyncio.run(scenario())


def test_an_object_inside_that_looks_like_its_metadata_is_left_alone(
    loans: Reclaimer, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with sharing(loans, tmp_path) as (owner, worker, _, _):
            revision = await owner.store.barrier() + 1
            inner = {"resourceVersion": str(revision), "uid": "u-2"}
            own = {"name": "a", "uid": "u-1"}
            obj = {"apiVersion": "v1", "data": inner, "kind": "T", "metadata": own, "spec": inner}
            objects, raw = owner.collection(PREFIX), orjson.dumps(obj)
            entry = InMemoryEntry(raw, 0, "a", raw.index(b'"uid":"u-1"'))
            assert (await owner.put(objects, entry, 0)).revision == revision
            await worker.consistent()

            for backend in (owner, worker):
                found = backend.collection(PREFIX).entries["a"]
                assert found.stored() == raw

    asyncio.run(scenario())
