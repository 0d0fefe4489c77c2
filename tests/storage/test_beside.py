"""A worker on a cluster: it asks the cluster itself, and is told by the lender what there is."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import InMemoryEntry
from instar.server.registry.stored.shared_entry import BorrowedEntry
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import Event, StoreLost, Unavailable, Write
from instar.wire.storage.workers import worker_remote as module
from instar.wire.storage.workers.arena import Arena, make_file
from instar.wire.storage.workers.arena_reclaim import Reclaimer
from instar.wire.storage.workers.store_server import SharedMemoryStore, StoreServer
from instar.wire.storage.workers.worker_remote import WorkerRemoteStore
from instar.wire.storage.workers.worker_store import borrow_store

PREFIX = "example.com/things/"
VALUE = b'{"apiVersion":"example.com/v1","kind":"T","metadata":{"name":"a","uid":"u"}}'


class Cluster(MemoryStore):
    """What several processes reach; here they are in one."""

    def __init__(self) -> None:
        super().__init__()
        self.expected: list[int] = []
        self.asked = asyncio.Event()

    def expect(self, revision: int) -> None:
        self.expected.append(revision)
        self.asked.set()

    async def close(self) -> None:
        """The other goes on."""


@contextlib.asynccontextmanager
async def beside(cluster: Cluster, folder: Path) -> AsyncIterator[tuple[StoreServer, Backend]]:
    file = make_file()
    loans = Reclaimer(Arena(file))
    owner = Backend(cluster, loans=loans)
    await owner.start()
    assert owner.worker_feed is not None
    server = StoreServer(cluster, folder, SharedMemoryStore(loans, owner.worker_feed))
    await server.start()
    lender = await borrow_store(folder)
    assert lender is not None
    worker = Backend(WorkerRemoteStore(cluster, lender))
    await worker.start()
    yield server, worker
    await worker.stop()
    await server.close()
    await owner.stop()
    os.close(file)


def test_a_worker_uses_its_own_writes_from_shared_memory(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with beside(Cluster(), tmp_path) as (_, worker):
            objects = worker.collection(PREFIX)
            made = await worker.put(objects, InMemoryEntry(VALUE, 0, "a"), 0)

            entry = objects.entries["a"]
            assert isinstance(entry, BorrowedEntry)
            assert entry.view == made.view
            assert (await worker.store.get(f"{PREFIX}a")) is not None

    asyncio.run(scenario())


def test_a_read_waits_for_what_the_cluster_says_and_the_lender_sees_to_it(tmp_path: Path) -> None:
    cluster = Cluster()

    async def scenario() -> None:
        async with beside(cluster, tmp_path) as (_, worker):
            publish, late = cluster._followers.publish, list[tuple[list[Event], int]]()
            cluster._followers.publish = (  # type: ignore[method-assign]
                lambda events, revision: late.append(([*events], revision))
            )
            revision = await cluster.commit(Write(f"{PREFIX}a", VALUE, 0))
            reading = asyncio.create_task(worker.consistent())
            await asyncio.wait_for(cluster.asked.wait(), 30)

            assert cluster.expected == [revision]
            assert not reading.done()
            for events, at in late:
                publish(events, at)
            await asyncio.wait_for(reading, 30)
            assert worker.collection(PREFIX).entries["a"].revision == revision

    asyncio.run(scenario())


def test_an_up_to_date_owner_gets_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster()
    monkeypatch.setattr(module, "_LOOK_SECONDS", 30.0)  # however busy the machine is

    async def scenario() -> None:
        async with beside(cluster, tmp_path) as (_, worker):
            for number in range(20):
                await worker.put(
                    worker.collection(PREFIX), InMemoryEntry(VALUE, 0, f"n{number}"), 0
                )
                await worker.consistent()

    asyncio.run(scenario())
    assert cluster.expected == []


def test_a_reload_may_be_compared_with_the_state_before(tmp_path: Path) -> None:
    """As those do who serve by an object, and serve by the next: a CRD."""
    cluster, told = Cluster(), list[bytes]()

    async def scenario() -> bytes:
        async with beside(cluster, tmp_path) as (_, worker):
            await worker.put(worker.collection(PREFIX), InMemoryEntry(VALUE, 0, "a"), 0)
            before, compared = worker.collection(PREFIX).entries["a"], asyncio.Event()

            def compare() -> None:
                assert worker.collection(PREFIX).entries["a"] is not before
                told.append(before.view)
                compared.set()

            view = before.view
            worker.cache.on_reset(compare)
            cluster._followers.end(Unavailable("gone for a moment"))
            await asyncio.wait_for(compared.wait(), 30)
            return view

    assert asyncio.run(scenario()) == told[0]


def test_a_key_that_is_not_utf8_reaches_all_workers(tmp_path: Path) -> None:
    cluster = Cluster()
    strange = b"\xff".decode(errors="surrogateescape")

    async def scenario() -> None:
        await cluster.commit(Write(f"{PREFIX}{strange}", VALUE, 0))
        async with beside(cluster, tmp_path) as (_, worker):
            await cluster.commit(Write(f"{PREFIX}{strange}2", VALUE, 0))
            await worker.consistent()

            found = worker.collection(PREFIX).entries
            assert {*found} == {strange, f"{strange}2"}
            assert {type(entry) for entry in found.values()} == {BorrowedEntry}

    asyncio.run(scenario())


def test_a_worker_is_behind_as_soon_as_the_owner_has_a_newer_revision(tmp_path: Path) -> None:
    cluster = Cluster()

    async def scenario() -> None:
        async with beside(cluster, tmp_path) as (_, worker):
            await worker.consistent()
            behind = [worker.behind()]
            await cluster.commit(Write(f"{PREFIX}a", VALUE, 0))

            behind.append(worker.behind())  # before anything has come over the socket
            await worker.consistent()
            behind.append(worker.behind())

            assert behind == [False, True, False]

    asyncio.run(scenario())


def test_without_the_lender_it_is_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with beside(Cluster(), tmp_path) as (server, worker):
            store = worker.store
            assert isinstance(store, WorkerRemoteStore)
            await server.close()
            with pytest.raises(StoreLost):
                await asyncio.wait_for(store.lost(), 30)

    asyncio.run(scenario())
