"""The PostgreSQL store on a real server: batches, rights, migrations, space, moving data."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from instar.wire.storage.copy import copy_store
from instar.wire.storage.etcd.client import EtcdOptions
from instar.wire.storage.etcd.store import EtcdStore
from instar.wire.storage.postgres import schema as tables
from instar.wire.storage.postgres.commit import MOST_KEY, MOST_VALUE
from instar.wire.storage.postgres.driver import Connection, load_driver
from instar.wire.storage.postgres.provisioning import provision
from instar.wire.storage.postgres.store import PostgresStore
from instar.wire.storage.postgres.url import parse_url
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Store, StoreError, Unavailable, ValueTooLarge, Write
from instar.wire.storage.verify import verify_store
from tests.storage.etcd_server import EtcdCluster
from tests.storage.postgres_server import PostgresNode

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


@pytest.fixture
def schema() -> str:
    return f"t{uuid.uuid4().hex}"


@asynccontextmanager
async def opened(url: str, seconds: float = 10) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(parse_url(url, timeout=seconds))
    try:
        yield store
    finally:
        await store.close()


async def content(store: Store) -> list[tuple[str, bytes]]:
    return [(record.key, record.value) for record in (await store.range("")).records]


# -- writing -------------------------------------------------------------------------------------


async def test_a_batch_numbers_accepted_writes_and_spares_the_stale(
    postgres: PostgresNode, schema: str
) -> None:
    async with opened(postgres.url(schema)) as store:
        await asyncio.gather(*(store.commit(Write(f"old{n}", b"1", 0)) for n in range(4)))
        before, batches = await store.barrier(), store.commits
        answers = await asyncio.gather(
            *(
                store.commit(Write(f"{'new' if n % 2 else 'old'}{n // 2}", b"2", 0))
                for n in range(8)
            ),
            return_exceptions=True,
        )
        assert [answer for answer in answers if isinstance(answer, int)] == list(
            range(before + 1, before + 5)
        )
        assert store.commits == batches + 1


async def test_stale_writes_do_not_change_the_revision(postgres: PostgresNode, schema: str) -> None:
    async with opened(postgres.url(schema)) as store:
        revision = await store.commit(Write("a", b"1", 0))
        with pytest.raises(StoreError):
            await store.commit(Write("a", b"2", 0))
        assert await store.barrier() == revision


async def test_a_value_that_is_too_large_does_not_affect_other_writes(
    postgres: PostgresNode, schema: str
) -> None:
    async with opened(postgres.url(schema)) as store:
        answers = await asyncio.gather(
            store.commit(Write("a", b"1", 0)),
            store.commit(Write("k" * (MOST_KEY + 1), b"1", 0)),
            store.commit(Write("b", bytes(MOST_VALUE + 1), 0)),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [int, ValueTooLarge, ValueTooLarge]
        assert await store.commit(Write("k" * MOST_KEY, bytes(2 << 20), 0)) == 3


async def test_a_hundred_reads_share_few_questions(postgres: PostgresNode, schema: str) -> None:
    async with opened(postgres.url(schema)) as store:
        await store.barrier()
        [before] = [m for m in store.metrics() if m.name == "instar_postgres_barrier_seconds"]
        asked = sum(next(iter(before.family().series.values()))[:-1])
        await asyncio.gather(*(store.barrier() for _ in range(100)))
        assert sum(next(iter(before.family().series.values()))[:-1]) - asked <= 3


async def test_a_role_that_prefers_serializable_changes_nothing(
    postgres: PostgresNode, schema: str
) -> None:
    postgres.sql(f"create role {schema} superuser login")
    postgres.sql(f"alter role {schema} set default_transaction_isolation = 'serializable'")
    postgres.sql(f"alter role {schema} set synchronous_commit = off")
    url = postgres.url(schema).replace("postgres@", f"{schema}@")
    async with opened(url) as one, opened(url) as other:
        revisions = await asyncio.gather(
            *(
                store.commit(Write(f"{name}{n}", b"1", 0))
                for n in range(50)
                for name, store in (("a", one), ("b", other))
            )
        )
        assert sorted(revisions) == list(range(2, 102))


# -- tables and rights -----------------------------------------------------------------------------


async def test_a_runtime_role_can_write_through_the_functions_and_nothing_else(
    postgres: PostgresNode, schema: str
) -> None:
    postgres.sql(f"create role {schema} login")
    version = await provision(parse_url(postgres.url(schema)), schema)
    assert version == max(tables.migrations())
    url = postgres.url(schema).replace("postgres@", f"{schema}@")
    async with opened(url) as store:
        revision = await store.commit(Write("a", b"1", 0))
        await store.commit(Write("a", b"2", revision))
        await store.compact(revision + 1)
        assert await content(store) == [("a", b"2")]
    for forbidden in (
        f"insert into {schema}.log values (9, 0, 0, 'a', 'b')",
        f"update {schema}.head set revision = 99",
        f"alter table {schema}.log add column x int",
        f"drop table {schema}.log",
    ):
        with pytest.raises(AssertionError, match=r"permission denied|must be owner"):
            postgres.sql(forbidden, user=schema)


async def test_a_role_without_create_rights_gets_instructions(
    postgres: PostgresNode, schema: str
) -> None:
    postgres.sql(f"create role {schema} login")
    url = postgres.url(schema).replace("postgres@", f"{schema}@")
    async with opened(url, 1) as store:
        with pytest.raises(Unavailable, match="instar storage init"):
            await store.barrier()


async def test_the_printed_script_creates_what_a_server_needs(
    postgres: PostgresNode, schema: str
) -> None:
    postgres.sql(f"create role {schema} login")
    postgres.sql(tables.creation_script(schema, schema))
    url = postgres.url(schema).replace("postgres@", f"{schema}@")
    async with opened(url) as store:
        assert await store.commit(Write("a", b"1", 0)) == 2


async def test_a_migration_runs_once_however_many_start_it(
    postgres: PostgresNode, schema: str
) -> None:
    later = {**tables.migrations(), 2: "create table {schema}.added (a int);"}
    connect = load_driver().connect
    parts = {"host": "127.0.0.1", "port": postgres.port, "user": "postgres", "database": "postgres"}
    connections: list[Connection] = [await connect(**parts) for _ in range(4)]
    async with opened(postgres.url(schema)) as store:
        await store.commit(Write("a", b"1", 0))

        versions = await asyncio.gather(
            *(tables.migrate(connection, schema, later) for connection in connections)
        )

        assert versions == [2, 2, 2, 2]
        assert await store.commit(Write("b", b"1", 0)) == 3  # release n goes on beside n + 1
        async with opened(postgres.url(schema)) as older:
            with pytest.raises(StoreError, match="use the newer release"):
                await older.barrier()
    for connection in connections:
        await connection.close()


async def test_two_instances_in_one_database_do_not_see_each_other(
    postgres: PostgresNode, schema: str
) -> None:
    async with opened(postgres.url(schema)) as one, opened(postgres.url(schema + "b")) as other:
        assert await one.commit(Write("a", b"1", 0)) == 2
        assert await other.commit(Write("a", b"2", 0)) == 2
        assert await content(one) == [("a", b"1")]


# -- space -----------------------------------------------------------------------------------------


async def test_updates_with_compaction_stay_within_their_space(
    postgres: PostgresNode, schema: str
) -> None:
    keys, rounds = 300, 24
    async with opened(postgres.url(schema)) as store:
        heads = [0] * keys
        sizes = []
        for turn in range(rounds):
            heads = await asyncio.gather(
                *(store.commit(Write(f"k{n:04}", os.urandom(1000), heads[n])) for n in range(keys))
            )
            if turn % 4 == 3:
                await store.compact(max(heads))
                sizes.append(int(postgres.sql(f"select pg_total_relation_size('{schema}.log')")))
        assert max(sizes[2:]) <= 1.5 * max(sizes[:2]), sizes
        assert len(await content(store)) == keys
        assert postgres.sql(f"select count(*) from {schema}.log") == str(keys)


async def test_a_sweep_that_was_interrupted_is_finished_by_the_next(
    postgres: PostgresNode, schema: str
) -> None:
    async with opened(postgres.url(schema)) as store:
        revision = 0
        for number in range(20):
            revision = await store.commit(Write("hot", b"%d" % number, revision))
        postgres.sql(f"select * from {schema}.compact_1({revision})")  # marked, and nothing deleted
        await store.compact(revision)
        assert postgres.sql(f"select count(*) from {schema}.log") == "1"


async def test_history_is_bounded_by_writes_and_bytes(postgres: PostgresNode, schema: str) -> None:
    async with opened(postgres.url(schema)) as store:
        revision = 0
        for _ in range(30):
            revision = await store.commit(Write("a", os.urandom(10_000), revision))
        assert await store.excess(1 << 30, 1000) == 0
        target = await store.excess(100_000, 1000)
        assert 2 < target < revision
        await store.compact(target)
        assert await store.excess(100_000, 1000) == 0


async def test_a_long_snapshot_elsewhere_is_noticed(
    postgres: PostgresNode,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("instar.wire.storage.postgres.compaction._OLD_SNAPSHOT", 10)
    monkeypatch.setattr("instar.wire.storage.postgres.compaction._VACUUM_ROWS", 1)
    connection = await load_driver().connect(
        host="127.0.0.1", port=postgres.port, user="postgres", database="postgres"
    )
    async with opened(postgres.url(schema)) as store:
        await store.barrier()
        transaction = connection.transaction(isolation="repeatable_read")
        await transaction.start()
        await connection.fetch("select 1 from pg_class limit 1")
        revision = 0
        for number in range(30):
            revision = await store.commit(Write("a", b"%d" % number, revision))
        await store.compact(revision)
        assert "transactions old" in caplog.text
        await transaction.rollback()
    await connection.close()


# -- moving data -----------------------------------------------------------------------------------


async def test_from_sqlite_to_postgresql_to_etcd_and_back(
    postgres: PostgresNode, schema: str, tmp_path: Path
) -> None:
    first, last = SqliteStore(str(tmp_path / "a.db")), SqliteStore(str(tmp_path / "b.db"))
    for number in range(700):
        await first.commit(
            Write(f"g.io/p/ü{number:04}", b'{"n":%d}' % number * (number % 5 + 1), 0)
        )
    with EtcdCluster(tmp_path, members=1) as cluster:
        there = EtcdStore(cluster.addresses, options=EtcdOptions(timeout=20))
        async with opened(postgres.url(schema)) as between:
            for source, target in ((first, between), (between, there), (there, last)):
                await copy_store(source, target)
            assert await content(last) == await content(first)
            verified = await verify_store(between, lambda key, value: True)
            assert (verified.records, verified.problems) == (700, [])
            postgres.sql(f"update {schema}.log set previous = 5 where revision = 9")
            assert (await verify_store(between, lambda key, value: True)).problems
        await there.close()
    for store in (first, last):
        await store.close()


async def test_one_dump_is_one_state_however_many_writes_continue(
    postgres: PostgresNode, schema: str
) -> None:
    async with opened(postgres.url(schema)) as store:
        await store.barrier()
        going = asyncio.ensure_future(
            asyncio.gather(*(store.commit(Write(f"k{n}", b"1", 0)) for n in range(2000)))
        )
        dump = await asyncio.to_thread(
            postgres.run,
            "pg_dump",
            "-h",
            "127.0.0.1",
            "-p",
            str(postgres.port),
            "-U",
            "postgres",
            "-n",
            schema,
            "postgres",
        )
        await going
    postgres.sql(f"drop schema {schema} cascade")
    await asyncio.to_thread(
        postgres.run,
        "psql",
        "-q",
        "-h",
        "127.0.0.1",
        "-p",
        str(postgres.port),
        "-U",
        "postgres",
        "-v",
        "ON_ERROR_STOP=1",
        "postgres",
        data=dump,
    )
    async with opened(postgres.url(schema)) as restored:
        assert await restored.barrier() == len(await content(restored)) + 1
        await restored.commit(Write("after", b"1", 0))
