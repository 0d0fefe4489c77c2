"""A real PostgreSQL whose connections are cut, ended and frozen, with every answer compared."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from instar.wire.storage.postgres.store import PostgresStore
from instar.wire.storage.postgres.url import parse_url
from instar.wire.storage.store import Stale, StoreError, Unavailable, Write
from tests.storage.postgres_cuts import cut
from tests.storage.postgres_server import PostgresNode
from tests.storage.proxy import Proxy
from tests.storage.recorder import Recorder

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


@pytest.fixture
def schema() -> str:
    return f"f{uuid.uuid4().hex}"


@pytest.fixture
async def store(postgres: PostgresNode, schema: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(parse_url(postgres.url(schema), timeout=10))
    yield opened
    await opened.close()


async def test_connections_cut_at_any_step_leave_no_answer_wrong(
    postgres: PostgresNode, schema: str
) -> None:
    report = await cut(postgres, schema, cuts=60, seed=3)

    assert report.problems == []
    assert report.cuts >= 60
    assert report.acknowledged


async def test_a_request_that_arrives_after_its_client_gave_up_is_refused(
    postgres: PostgresNode, schema: str, store: PostgresStore
) -> None:
    """The ghost: a batch held in the network, settled as not committed, must not come later."""
    await store.barrier()
    proxy = Proxy(postgres.address)
    address = await proxy.start()
    url = postgres.url(schema).replace(postgres.address, address)
    away = PostgresStore(parse_url(url, timeout=3))
    await away.commit(Write("g/p/first", b"1", 0))
    proxy.swallow_requests = True
    writing = asyncio.ensure_future(away.commit(Write("g/p/ghost", b"1", 0)))
    await proxy.swallowed.wait()
    proxy.swallow_requests = False
    written = await asyncio.wait_for(writing, 20)
    proxy.deliver_late()
    await store.commit(Write("g/p/after", b"1", 0))
    await away.close()
    await proxy.stop()

    found = await store.range("g/p/")
    assert {record.key for record in found.records} == {"g/p/first", "g/p/ghost", "g/p/after"}
    assert written in {record.revision for record in found.records}
    rows = postgres.sql(f"select count(*), max(revision) - 1 from {schema}.log")
    assert len(set(rows.split("|"))) == 1  # no hole, nothing twice


async def test_an_answer_lost_in_the_network_is_settled_as_committed(
    postgres: PostgresNode, schema: str
) -> None:
    proxy = Proxy(postgres.address)
    address = await proxy.start()
    away = PostgresStore(
        parse_url(postgres.url(schema).replace(postgres.address, address), timeout=1)
    )
    await away.commit(Write("g/p/first", b"1", 0))
    proxy.swallow_answers = True
    writing = asyncio.ensure_future(away.commit(Write("g/p/second", b"2", 0)))
    await proxy.swallowed.wait()
    proxy.swallow_answers = False

    revision = await asyncio.wait_for(writing, 20)

    found = await away.get("g/p/second")
    assert found is not None
    assert (found.value, found.revision) == (b"2", revision)
    await away.close()
    await proxy.stop()


async def test_connections_ended_by_the_administrator_lose_nothing(
    postgres: PostgresNode, schema: str, store: PostgresStore
) -> None:
    recorder = Recorder(store, after=await store.barrier())
    revisions: list[int] = []
    stop = asyncio.Event()

    async def write(name: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            revisions.append(await store.commit(Write(f"g/p/{name}-{number}", b"v", 0)))

    writing = [asyncio.ensure_future(write(name)) for name in range(4)]
    for _ in range(15):
        await asyncio.to_thread(
            postgres.sql,
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where application_name like 'instar/%' and application_name <> 'instar/read'",
        )
    stop.set()
    await asyncio.gather(*writing)
    end = await store.barrier()
    await recorder.reached(end)

    assert [event.revision for event in recorder.events] == list(range(2, end + 1))
    assert sorted(revisions) == list(range(2, end + 1))


async def test_an_event_arrives_although_no_notification_does(
    postgres: PostgresNode, schema: str, store: PostgresStore
) -> None:
    recorder = Recorder(store, after=await store.barrier())
    other = PostgresStore(parse_url(postgres.url(schema)))
    await other.barrier()
    # as if every notification were lost: the channel of the function is another one
    text = postgres.sql(f"select pg_get_functiondef('{schema}.commit_1'::regproc)")
    postgres.sql(text.replace(f"pg_notify('{schema}'", "pg_notify('nowhere'"))

    revision = await other.commit(Write("g/p/a", b"1", 0))

    await asyncio.wait_for(recorder.reached(revision), 10)
    await other.close()


async def test_a_follower_behind_a_compaction_gets_an_error(
    postgres: PostgresNode, schema: str, store: PostgresStore
) -> None:
    first = await store.commit(Write("g/p/a", b"1", 0))
    gone = await store.commit(Write("g/p/a", None, first))
    await store.commit(Write("g/p/b", b"1", 0))
    await store.compact(gone)

    error = await Recorder.refusal(store, first)

    assert getattr(error, "oldest", 0) == gone


async def test_writers_get_a_definite_failure_while_the_server_is_away(
    postgres: PostgresNode, schema: str
) -> None:
    nowhere = PostgresStore(parse_url("postgresql://postgres@127.0.0.1:1/postgres", timeout=1))
    with pytest.raises(Unavailable, match="nothing was written"):
        await nowhere.commit(Write("g/p/a", b"1", 0))
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        await nowhere.barrier()
    await nowhere.close()


async def test_two_processes_add_up_one_counter(
    postgres: PostgresNode, schema: str, store: PostgresStore
) -> None:
    other = PostgresStore(parse_url(postgres.url(schema), timeout=10))
    await store.commit(Write("g/p/n", b"0", 0))

    async def add(used: PostgresStore, times: int) -> None:
        for _ in range(times):
            while True:
                found = await used.get("g/p/n")
                assert found is not None
                try:
                    await used.commit(
                        Write("g/p/n", b"%d" % (int(found.value) + 1), found.revision)
                    )
                    break
                except Stale:
                    continue

    await asyncio.gather(*(add(used, 30) for used in (store, other) for _ in range(2)))

    found = await store.get("g/p/n")
    assert found is not None
    assert found.value == b"120"
    await other.close()


async def test_four_processes_start_at_once_on_an_empty_database(
    postgres: PostgresNode, schema: str
) -> None:
    stores = [PostgresStore(parse_url(postgres.url(schema), timeout=20)) for _ in range(4)]
    revisions = await asyncio.gather(*(store.barrier() for store in stores))
    assert revisions == [1, 1, 1, 1]
    assert postgres.sql(f"select count(*) from {schema}.version") == "1"
    for store in stores:
        await store.close()


async def test_history_that_went_back_makes_followers_load_again(
    postgres: PostgresNode, schema: str, store: PostgresStore
) -> None:
    """A restore of an older state under a running process, which then grows past the old one."""
    for number in range(3):
        await store.commit(Write(f"g/p/{number}", b"old", 0))
    recorder = Recorder(store, after=1)
    await recorder.reached(4)
    postgres.sql(
        f"begin; delete from {schema}.log where revision > 2; "
        f"insert into {schema}.log select n, 0, 77, ('x' || n)::bytea, 'new' "
        f"from generate_series(3, 9) n; update {schema}.head set revision = 9; "
        f"select pg_notify('{schema}', '9'); commit"
    )
    with pytest.raises(StoreError, match="history went back"):
        await recorder.reached(1000)

    assert {record.key for record in (await store.range("")).records} == {
        "g/p/0",
        *(f"x{number}" for number in range(3, 10)),
    }


async def test_the_data_of_another_instance_is_refused(
    postgres: PostgresNode, schema: str, store: PostgresStore
) -> None:
    await store.commit(Write("g/p/a", b"1", 0))
    postgres.sql(f"update {schema}.head set identity = gen_random_uuid()")
    postgres.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where application_name like 'instar/%'"
    )
    with pytest.raises(Unavailable, match="another instance"):
        await store.barrier()
