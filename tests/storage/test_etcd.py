"""What is particular to the etcd store: layout, credentials, doubt, progress, fail-over."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc.aio
import pytest
import trustme

from instar.wire.storage.etcd import messages as wire
from instar.wire.storage.etcd import watch
from instar.wire.storage.etcd.client import EtcdOptions
from instar.wire.storage.etcd.store import EtcdStore
from instar.wire.storage.etcd.watch import reliable_progress
from instar.wire.storage.open import StorageOptions, open_store
from instar.wire.storage.store import Record, Stale, StoreError, Unavailable, ValueTooLarge, Write
from tests.storage.etcd_server import EtcdCluster
from tests.storage.proxy import Proxy
from tests.storage.recorder import Recorder

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]

PATIENT = EtcdOptions(timeout=20)
HASTY = EtcdOptions(timeout=1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), members=1) as cluster:
        yield cluster


@pytest.fixture
def prefix() -> str:
    return f"/{uuid.uuid4()}"


@pytest.fixture
async def direct(cluster: EtcdCluster, prefix: str) -> AsyncIterator[EtcdStore]:
    store = EtcdStore(cluster.addresses, prefix, PATIENT)
    await store.barrier()
    yield store
    await store.close()


@pytest.fixture
async def proxy(cluster: EtcdCluster) -> AsyncIterator[Proxy]:
    proxy = Proxy(cluster.addresses[0])
    yield proxy
    await proxy.stop()


@pytest.fixture
async def behind_proxy(
    cluster: EtcdCluster, prefix: str, proxy: Proxy, direct: EtcdStore
) -> AsyncIterator[EtcdStore]:
    """A store that talks through the proxy first and can go around it."""
    store = EtcdStore([await proxy.start(), *cluster.addresses], prefix, HASTY)
    await store.barrier()
    yield store
    await store.close()


async def call(address: str, method: str, request: bytes) -> bytes:
    async with grpc.aio.insecure_channel(address) as channel:
        ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            f"/etcdserverpb.{method}"
        )
        return await ask(request, timeout=5)


# -- layout


async def test_keys_and_values_are_laid_out_as_kube_apiserver_does(cluster: EtcdCluster) -> None:
    store = await open_store(f"etcd://{cluster.addresses[0]}")
    await store.commit(Write("example.com/widgets/ns/a", b'{"kind":"Widget"}', 0))
    raw = await call(
        cluster.addresses[0],
        "KV/Range",
        wire.range_request(b"/registry/example.com/widgets/ns/a"),
    )
    assert [kv.value for kv in wire.read_range(raw).kvs] == [b'{"kind":"Widget"}']
    await store.close()


async def test_stores_with_other_prefixes_do_not_see_each_other(cluster: EtcdCluster) -> None:
    one = await open_store(f"etcd://{cluster.addresses[0]}/teams/one/")
    two = await open_store(f"etcd://{cluster.addresses[0]}/teams/one-b")
    await one.commit(Write("k", b"1", 0))
    await two.commit(Write("k", b"2", 0))
    assert [record.value for record in (await one.range("")).records] == [b"1"]
    assert [record.value for record in (await two.range("")).records] == [b"2"]
    await one.close()
    await two.close()


async def test_a_long_range_is_read_in_chunks_of_one_moment(
    direct: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("instar.wire.storage.etcd.store._CHUNK", 7)
    await asyncio.gather(*(direct.commit(Write(f"k{n:02}", b"", 0)) for n in range(40)))
    page = await direct.range("")
    assert [record.key for record in page.records] == [f"k{n:02}" for n in range(40)]
    page = await direct.range("", start="k10", limit=10)
    assert [record.key for record in page.records] == [f"k{n:02}" for n in range(10, 20)]
    assert page.more


async def test_a_value_above_etcds_limit_is_too_large(direct: EtcdStore) -> None:
    for size in (1_600_000, 5_000_000):
        with pytest.raises(ValueTooLarge):
            await direct.commit(Write("big", b"x" * size, 0))


@pytest.mark.parametrize("url", ["etcd:", "etcd://", "etcd:///registry", "etcd://u:p@h:2379"])
async def test_a_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(StoreError, match="not a storage URL"):
        await open_store(url)


# -- two processes on one cluster


async def test_writes_of_one_store_are_read_and_followed_by_a_second(
    cluster: EtcdCluster, prefix: str, direct: EtcdStore
) -> None:
    other = EtcdStore(cluster.addresses, prefix)
    recorder = Recorder(other, after=await other.barrier())
    revision = await direct.commit(Write("a", b"1", 0))
    assert await other.get("a") == Record("a", b"1", revision)
    assert await other.barrier() >= revision
    await recorder.reached(revision)
    with pytest.raises(Stale):
        await other.commit(Write("a", b"2", 0))
    await other.close()


@pytest.mark.parametrize("by_progress_request", [True, False])
async def test_a_follower_reaches_the_barrier_when_other_keys_are_written(
    cluster: EtcdCluster,
    direct: EtcdStore,
    by_progress_request: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "reliable_progress", lambda version: by_progress_request)
    recorder = Recorder(direct, after=await direct.barrier())
    await call(cluster.addresses[0], "KV/Put", wire.put_request(b"/elsewhere", b"x"))
    revision = await direct.barrier()
    assert revision > recorder.revision
    await recorder.reached(revision)
    assert recorder.events == []
    assert (await direct.range("")).records == []


@pytest.mark.parametrize(
    ("version", "reliable"),
    [
        ((3, 4, 23), False),
        ((3, 4, 31), True),
        ((3, 5, 1), False),
        ((3, 5, 12), False),
        ((3, 5, 13), True),
        ((3, 6, 0), True),
        ((0,), False),
    ],
)
def test_progress_is_requested_only_from_etcd_versions_that_report_it_correctly(
    version: tuple[int, ...], reliable: bool
) -> None:
    assert reliable_progress(version) is reliable


async def test_an_own_write_is_shown_when_it_is_acknowledged_and_once(
    cluster: EtcdCluster, prefix: str, direct: EtcdStore
) -> None:
    recorder = Recorder(direct, after=await direct.barrier())
    revisions: list[int] = []
    for number in range(20):
        revision = await direct.commit(
            Write(f"k{number % 3}", b"%d" % number, 0 if number < 3 else revisions[-3])
        )
        revisions.append(revision)
        assert recorder.revision == revision
    gone = await direct.commit(Write("k0", None, revisions[18]))
    assert recorder.revision == gone
    # Of another's write only the watch can tell, and it has brought the others before.
    other = EtcdStore(cluster.addresses, prefix, PATIENT)
    await recorder.reached(await other.commit(Write("last", b"", 0)))
    await other.close()
    assert [event.revision for event in recorder.events] == [*revisions, gone, gone + 1]
    assert [event.value for event in recorder.events[-2:]] == [None, b""]


async def test_own_writes_wait_for_earlier_writes_of_other_clients(
    cluster: EtcdCluster, prefix: str, direct: EtcdStore
) -> None:
    other = EtcdStore(cluster.addresses, prefix, PATIENT)
    recorder = Recorder(direct, after=await direct.barrier())
    stores = [direct, other, other, direct, other, direct, direct]
    writes = [
        store.commit(Write(f"{number}-{turn}", b"", 0))
        for turn in range(10)
        for number, store in enumerate(stores)
    ]
    revisions = sorted(await asyncio.gather(*writes))
    await recorder.reached(revisions[-1])
    assert [event.revision for event in recorder.events] == revisions
    await other.close()


# -- writes that are not answered


async def test_a_create_that_happened_unanswered_is_acknowledged(
    behind_proxy: EtcdStore, proxy: Proxy, direct: EtcdStore
) -> None:
    proxy.swallow_answers = True
    revision = await behind_proxy.commit(Write("a", b"uid-1", 0))
    assert await direct.get("a") == Record("a", b"uid-1", revision)


async def test_a_create_that_happened_and_was_changed_since_is_acknowledged(
    behind_proxy: EtcdStore, proxy: Proxy, direct: EtcdStore
) -> None:
    proxy.swallow_answers = True
    write = asyncio.ensure_future(behind_proxy.commit(Write("a", b"uid-1", 0)))
    recorder = Recorder(direct, after=await direct.barrier() - 1)
    while not recorder.events:
        await recorder.reached(recorder.revision + 1)
    await direct.commit(Write("a", b"changed", recorder.events[0].revision))
    assert await write == recorder.events[0].revision


@pytest.mark.parametrize("value", [b"2", None])
async def test_an_unanswered_change_that_may_be_ours_stays_in_doubt(
    behind_proxy: EtcdStore, proxy: Proxy, value: bytes | None
) -> None:
    revision = await behind_proxy.commit(Write("a", b"1", 0))
    proxy.swallow_answers = True
    with pytest.raises(Unavailable, match="unknown whether"):
        await behind_proxy.commit(Write("a", value, revision))
    found = await behind_proxy.get("a")
    assert (found.value if found else None) == value


async def test_an_unanswered_update_overtaken_by_another_writer_is_stale(
    behind_proxy: EtcdStore, proxy: Proxy, direct: EtcdStore
) -> None:
    expected = await direct.commit(Write("a", b"0", 0))
    proxy.swallow_requests = True
    write = asyncio.ensure_future(behind_proxy.commit(Write("a", b"mine", expected)))
    await proxy.swallowed.wait()
    theirs = await direct.commit(Write("a", b"theirs", expected))
    latest = await direct.commit(Write("a", b"later", theirs))
    with pytest.raises(Stale) as caught:
        await write
    assert caught.value.actual == latest


async def test_an_unanswered_creation_overtaken_by_another_writer_stays_unknown(
    behind_proxy: EtcdStore, proxy: Proxy, direct: EtcdStore
) -> None:
    proxy.swallow_requests = True
    write = asyncio.ensure_future(behind_proxy.commit(Write("a", b"mine", 0)))
    await proxy.swallowed.wait()
    theirs = await direct.commit(Write("a", b"theirs", 0))
    with pytest.raises(Unavailable, match="unknown whether"):
        await write
    gone = await direct.commit(Write("a", None, theirs))
    recorder = Recorder(direct, after=gone)
    proxy.deliver_late()
    await recorder.reached(gone + 1)
    assert [event.value for event in recorder.events] == [b"mine"]


async def test_a_lost_request_is_never_acknowledged(
    behind_proxy: EtcdStore, proxy: Proxy, direct: EtcdStore
) -> None:
    proxy.swallow_requests = True
    with pytest.raises(Unavailable):
        await behind_proxy.commit(Write("a", b"1", 0))
    assert await direct.get("a") is None


async def test_a_watch_leaves_a_member_that_says_nothing_any_more(
    behind_proxy: EtcdStore, proxy: Proxy, direct: EtcdStore
) -> None:
    recorder = Recorder(behind_proxy, after=await behind_proxy.barrier())
    await recorder.reached(await direct.commit(Write("a", b"1", 0)))
    proxy.swallow_answers = True
    revision = await direct.commit(Write("b", b"2", 0))
    assert await behind_proxy.barrier() >= revision
    await recorder.reached(revision)
    assert [event.key for event in recorder.events] == ["a", "b"]


# -- no etcd, credentials


async def test_without_etcd_calls_are_unavailable_and_a_late_start_is_noticed(
    tmp_path: Path,
) -> None:
    late = EtcdCluster(tmp_path, members=1)
    store = EtcdStore(late.addresses, options=EtcdOptions(timeout=0.3))
    recorder = Recorder(store, after=1)
    with pytest.raises(Unavailable, match=late.addresses[0]):
        await store.get("a")
    with pytest.raises(Unavailable):
        await store.commit(Write("a", b"1", 0))
    with late:
        patient = EtcdStore(late.addresses, options=PATIENT)
        revision = await patient.commit(Write("a", b"1", 0))
        await recorder.reached(revision)
        await patient.close()
        await store.close()


async def test_tls_with_client_certificates(tmp_path: Path) -> None:
    authority = trustme.CA()
    ca, cert, key = (tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem"))
    authority.cert_pem.write_to_path(str(ca))
    issued = authority.issue_cert("127.0.0.1", "client")
    issued.private_key_pem.write_to_path(str(key))
    for part in issued.cert_chain_pems:
        part.write_to_path(str(cert), append=True)
    server = ["--cert-file", str(cert), "--key-file", str(key)]
    server += ["--client-cert-auth", "--trusted-ca-file", str(ca)]
    with EtcdCluster(tmp_path, members=1, extra=server) as cluster:
        url = f"etcd://{cluster.addresses[0]}"
        files = StorageOptions(
            etcd_cafile=str(ca), etcd_certfile=str(cert), etcd_keyfile=str(key), etcd_timeout=20
        )
        store = await open_store(url, files)
        revision = await store.commit(Write("a", b"1", 0))
        assert await store.get("a") == Record("a", b"1", revision)
        await store.close()

        without = await open_store(url, StorageOptions(etcd_cafile=str(ca), etcd_timeout=0.5))
        with pytest.raises(Unavailable):
            await without.get("a")
        await without.close()


async def test_a_certificate_file_that_is_missing_is_named() -> None:
    with pytest.raises(StoreError, match="nowhere"):
        await open_store("etcd://h", StorageOptions(etcd_cafile="nowhere.pem"))


async def test_users_and_passwords(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, members=1) as cluster:
        address = cluster.addresses[0]
        plain = EtcdStore([address], options=PATIENT)
        await plain.barrier()
        for method, request in (
            ("Auth/UserAdd", wire.authenticate_request("root", "secret")),
            ("Auth/UserGrantRole", wire.authenticate_request("root", "root")),
            ("Auth/AuthEnable", b""),
        ):
            await call(address, method, request)
        with pytest.raises(StoreError, match="user name"):
            await plain.get("a")
        await plain.close()

        wrong = EtcdStore([address], options=EtcdOptions(username="root", password="no"))
        with pytest.raises(StoreError, match="authentication failed"):
            await wrong.get("a")
        await wrong.close()

        store = EtcdStore(
            [address], options=EtcdOptions(username="root", password="secret", timeout=20)
        )
        recorder = Recorder(store, after=await store.barrier())
        await recorder.reached(await store.commit(Write("a", b"1", 0)))
        # A restarted member knows its old tokens no more.
        await asyncio.to_thread(cluster.members[0].kill)
        await asyncio.to_thread(cluster.start, cluster.members[0])
        await store.barrier()  # a write on the connection that died would be in doubt
        await recorder.reached(await store.commit(Write("b", b"2", 0)))
        assert [event.key for event in recorder.events] == ["a", "b"]
        await store.close()
