"""Real etcd members killed, stopped, cut off and filled up under load, with a checker at work."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc.aio
import pytest

from instar.wire.storage.etcd import messages as wire
from instar.wire.storage.etcd.client import EtcdOptions
from instar.wire.storage.etcd.store import EtcdStore
from instar.wire.storage.protobuf_fields import fields, int_field
from instar.wire.storage.store import Unavailable, Write
from tests.storage.checker import Checker
from tests.storage.etcd_server import EtcdCluster, EtcdMember
from tests.storage.recorder import Recorder

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]

OPTIONS = EtcdOptions(timeout=2)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path, members=3) as cluster:
        yield cluster


@pytest.fixture
async def store(cluster: EtcdCluster) -> AsyncIterator[EtcdStore]:
    patient = EtcdStore(cluster.addresses, options=EtcdOptions(timeout=20))
    await patient.barrier()
    await patient.close()
    store = EtcdStore(cluster.addresses, options=OPTIONS)
    yield store
    await store.close()


async def call(address: str, method: str, request: bytes) -> bytes:
    async with grpc.aio.insecure_channel(address) as channel:
        ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            f"/etcdserverpb.{method}"
        )
        return await ask(request, timeout=5)


async def member_and_leader(address: str) -> tuple[int, int]:
    """The ids of the member asked and of the one it takes for the leader."""
    status = dict(fields(await call(address, "Maintenance/Status", b"")))
    header, leads = status[1], status.get(4, 0)
    assert isinstance(header, bytes)
    assert isinstance(leads, int)
    member = dict(fields(header))[2]
    assert isinstance(member, int)
    return member, leads


async def leader(cluster: EtcdCluster) -> EtcdMember:
    for member in cluster.members:
        asked, leads = await member_and_leader(member.address)
        if asked == leads:
            return member
    raise AssertionError("no member says it leads")


async def make_room(address: str, revision: int) -> None:
    """What an operator does: compact, defragment, take the alarm back."""
    physical = int_field(2, 1)
    await call(address, "KV/Compact", wire.compaction_request(revision) + physical)
    await call(address, "Maintenance/Defragment", b"")
    member, _ = await member_and_leader(address)
    take_back = int_field(1, 2) + int_field(2, member) + int_field(3, 1)
    await call(address, "Maintenance/Alarm", take_back)


async def test_the_leader_killed_under_load_loses_nothing(
    cluster: EtcdCluster, store: EtcdStore
) -> None:
    recorder, checker = Recorder(store, after=await store.barrier()), Checker(store)
    checker.start(writers=8)
    await checker.more_acknowledged(300)
    for _ in range(2):
        killed = await leader(cluster)
        killed.kill()
        await checker.more_acknowledged(300)
        cluster.start(killed)
        await checker.more_acknowledged(300)
    await checker.stop()
    await checker.verify(recorder)


async def test_a_stopped_member_is_avoided_and_used_again_after_its_return(
    cluster: EtcdCluster, store: EtcdStore
) -> None:
    recorder, checker = Recorder(store, after=await store.barrier()), Checker(store)
    checker.start(writers=8)
    await checker.more_acknowledged(200)
    for stopped in (cluster.members[0], await leader(cluster)):
        stopped.signal(signal.SIGSTOP)
        await checker.more_acknowledged(300)
        await recorder.reached(await store.barrier())
        stopped.signal(signal.SIGCONT)
        await checker.more_acknowledged(300)
    await checker.stop()
    await checker.verify(recorder)


async def test_without_a_majority_writes_are_refused_until_it_is_back(
    cluster: EtcdCluster, store: EtcdStore
) -> None:
    recorder, checker = Recorder(store, after=await store.barrier()), Checker(store)
    checker.start(writers=8)
    await checker.more_acknowledged(200)
    for member in cluster.members[:2]:
        member.kill()
    refused = checker.refused
    await checker.until(lambda: checker.refused >= refused + 8)
    with pytest.raises(Unavailable):
        await store.barrier()
    for member in cluster.members[:2]:
        cluster.start(member)
    await checker.more_acknowledged(300)
    await checker.stop()
    await checker.verify(recorder)


async def test_a_restart_of_all_members_leaves_no_gap(
    cluster: EtcdCluster, store: EtcdStore
) -> None:
    recorder, checker = Recorder(store, after=await store.barrier()), Checker(store)
    checker.start(writers=8)
    await checker.more_acknowledged(200)
    for member in cluster.members:
        member.kill()
    for member in cluster.members:
        cluster.start(member)
    await checker.more_acknowledged(300)
    await checker.stop()
    await checker.verify(recorder)


async def test_a_follower_behind_a_compaction_gets_an_error(
    cluster: EtcdCluster, store: EtcdStore
) -> None:
    first = await store.commit(Write("a", b"1", 0))
    second = await store.commit(Write("a", b"2", first))
    await store.compact(second)
    failure = await Recorder.refusal(store, after=first)
    assert "compacted" in str(failure)


async def test_out_of_space_writes_are_refused_reads_continue_and_it_recovers(
    tmp_path: Path,
) -> None:
    quota = ("--quota-backend-bytes", "3000000")
    with EtcdCluster(tmp_path, members=1, extra=quota) as cluster:
        store = EtcdStore(cluster.addresses, options=EtcdOptions(timeout=20))
        recorder = Recorder(store, after=await store.barrier())
        acknowledged = await _write_until_full(store)
        assert await store.get("k") is not None
        await recorder.reached(await store.barrier())
        assert [event.revision for event in recorder.events] == acknowledged

        await make_room(cluster.addresses[0], await store.barrier())
        revision = await store.commit(Write("k", b"small", acknowledged[-1]))
        await recorder.reached(revision)
        await store.close()


async def _write_until_full(store: EtcdStore) -> list[int]:
    acknowledged: list[int] = []

    async def write_on() -> None:
        revision = 0
        while True:
            revision = await store.commit(Write("k", b"x" * 100_000, revision))
            acknowledged.append(revision)

    with pytest.raises(Unavailable, match="space exceeded"):
        await asyncio.wait_for(write_on(), 20)
    return acknowledged
