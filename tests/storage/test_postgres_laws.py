"""What several stores on one database may rely on: numbering, batches, reads, and space."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import AsyncIterator

import pytest

from instar.wire.storage.postgres.store import PostgresStore
from instar.wire.storage.postgres.url import parse_url
from instar.wire.storage.store import Compacted, Stale, Write
from tests.storage.postgres_server import PostgresNode
from tests.storage.recorder import Recorder
from tests.storage.test_postgres import content, opened

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


@pytest.fixture
def schema() -> str:
    return f"l{uuid.uuid4().hex}"


@pytest.fixture
async def three(postgres: PostgresNode, schema: str) -> AsyncIterator[list[PostgresStore]]:
    stores = [PostgresStore(parse_url(postgres.url(schema), timeout=20)) for _ in range(3)]
    yield stores
    for store in stores:
        await store.close()


# -- writing ---------------------------------------------------------------------------------------


async def test_three_stores_number_without_hole_or_repeat(three: list[PostgresStore]) -> None:
    chance = random.Random(5)
    recorders = [Recorder(store, after=await store.barrier()) for store in three]
    taken: list[int] = []

    async def write(store: PostgresStore, name: str) -> None:
        revision = 0
        for _ in range(60):
            deletes = revision and chance.random() < 0.3
            answer = await store.commit(Write(name, None if deletes else b"v", revision))
            taken.append(answer)
            revision = 0 if deletes else answer

    await asyncio.gather(*(write(s, f"g/p/{n}-{m}") for n, s in enumerate(three) for m in range(4)))

    everything = list(range(2, 2 + 3 * 4 * 60))
    assert sorted(taken) == everything
    for recorder in recorders:
        await recorder.reached(everything[-1])
        assert [event.revision for event in recorder.events] == everything


async def test_one_of_many_creators_wins_and_the_others_can_read_the_winner(
    three: list[PostgresStore],
) -> None:
    for turn in range(20):
        key = f"g/p/{turn}"
        answers = await asyncio.gather(
            *(store.commit(Write(key, b"%d" % n, 0)) for n, store in enumerate(three)),
            return_exceptions=True,
        )
        [won] = [answer for answer in answers if isinstance(answer, int)]
        lost = [answer for answer in answers if isinstance(answer, Stale)]
        assert [stale.actual for stale in lost] == [won, won]
        for store in three:
            found = await store.get(key)
            assert found is not None
            assert found.revision == won


async def test_a_write_that_waited_for_the_lock_is_judged_by_what_it_then_finds(
    postgres: PostgresNode, schema: str, three: list[PostgresStore]
) -> None:
    """The trap of a single statement: it would compare with the state before the wait."""
    first = await three[0].commit(Write("g/p/a", b"1", 0))
    connection = await three[1]._writing.ready()
    await connection.execute("begin")
    moved = await connection.fetchval(
        f"select {schema}.commit_1(gen_random_uuid(), 1, 7, "
        f"array['g/p/a'::bytea], array['2'::bytea], array[{first}::bigint])"
    )
    waits = asyncio.ensure_future(three[0].commit(Write("g/p/a", b"3", first)))
    blocked = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
    while await asyncio.to_thread(postgres.sql, blocked) == "0":  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    await connection.execute("commit")
    with pytest.raises(Stale) as caught:
        await waits
    assert caught.value.actual == moved[0]


async def test_a_batch_is_bounded_in_writes_and_bytes(postgres: PostgresNode, schema: str) -> None:
    async with opened(postgres.url(schema), 30) as store:
        await store.barrier()
        await asyncio.gather(*(store.commit(Write(f"k{n}", b"1", 0)) for n in range(600)))
        assert store.commits == 3
        await asyncio.gather(*(store.commit(Write(f"b{n}", bytes(1 << 20), 0)) for n in range(10)))
        assert store.commits == 3 + 3


async def test_a_caller_that_goes_away_changes_nothing_for_others(
    postgres: PostgresNode, schema: str
) -> None:
    async with opened(postgres.url(schema)) as store:
        await store.barrier()
        tasks = [asyncio.ensure_future(store.commit(Write(f"k{n:02}", b"1", 0))) for n in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(answer) for answer in answers[1::2]] == [int] * 10
        assert await store.commit(Write("after", b"1", 0)) == len(await content(store)) + 1


async def test_a_process_whose_row_was_removed_registers_again(
    postgres: PostgresNode, schema: str, three: list[PostgresStore]
) -> None:
    one, other = three[:2]
    revision = await one.commit(Write("a", b"1", 0))
    postgres.sql(f"update {schema}.writer set seen = now() - interval '25 hours'")
    await other.compact(revision)
    assert postgres.sql(f"select count(*) from {schema}.writer") == "0"
    assert await one.commit(Write("a", b"2", revision)) == revision + 1


async def test_keys_are_in_the_order_of_bytes_whatever_the_locale(
    postgres: PostgresNode, schema: str
) -> None:
    postgres.sql(
        f"create database {schema} template template0 encoding utf8 "
        "locale_provider icu icu_locale 'de-DE' locale 'C.UTF-8'"
    )
    keys = [
        "a",
        "a\x00",
        "a\x00b",
        "A",
        "Z",
        "z",
        "ä",
        "ß",
        "ss",
        "a-b",
        "a_b",
        "\udcff",
        "a\udcff",
    ]
    url = postgres.url(schema).replace("/postgres?", f"/{schema}?")
    async with opened(url) as store:
        await asyncio.gather(*(store.commit(Write(key, b"1", 0)) for key in keys))
        ordered = sorted(keys, key=lambda key: key.encode(errors="surrogateescape"))
        assert [key for key, _ in await content(store)] == ordered
        assert [r.key for r in (await store.range("a\udcff")).records] == ["a\udcff"]
        page = await store.range("a", start="a\x00", limit=3)
        assert [record.key for record in page.records] == ["a\x00", "a\x00b", "a-b"]
    postgres.sql(f"drop database {schema} with (force)")


# -- reading ---------------------------------------------------------------------------------------


async def test_a_read_after_an_acknowledged_write_elsewhere_sees_it(
    three: list[PostgresStore],
) -> None:
    async def pairs(writer: PostgresStore, reader: PostgresStore, name: str) -> None:
        for number in range(100):
            revision = await writer.commit(Write(f"{name}{number}", b"1", 0))
            assert await reader.barrier() >= revision

    a, b, c = three
    await asyncio.gather(pairs(a, b, "a"), pairs(b, c, "b"), pairs(c, a, "c"))


async def test_pages_at_one_revision_are_whole_or_told_compacted(
    three: list[PostgresStore],
) -> None:
    one, other, _ = three
    heads = await asyncio.gather(*(one.commit(Write(f"k{n:03}", b"0", 0)) for n in range(60)))
    told = whole = 0

    async def change() -> None:
        nonlocal heads
        for turn in range(12):
            heads = await asyncio.gather(
                *(one.commit(Write(f"k{n:03}", b"%d" % turn, heads[n])) for n in range(60))
            )
            await one.compact(max(heads))

    changing = asyncio.ensure_future(change())
    while not changing.done():
        at, start, found = 0, "", 0
        try:
            while True:
                page = await other.range("k", start=start, limit=10, revision=at)
                at, found = page.revision, found + len(page.records)
                if not page.more:
                    break
                start = page.records[-1].key + "\x00"
            assert found == 60
            whole += 1
        except Compacted:
            told += 1
    await changing
    assert whole
    assert len((await other.range("k")).records) == 60


async def test_a_key_of_many_versions_costs_a_reader_no_walk_over_them(
    postgres: PostgresNode, schema: str
) -> None:
    async with opened(postgres.url(schema)) as store:
        await store.commit(Write("hot", b"1", 0))
        postgres.sql(
            f"insert into {schema}.log select n, n - 1, 5, 'hot', 'v' "
            f"from generate_series(3, 20000) n; update {schema}.head set revision = 20000; "
            f"analyze {schema}.log"
        )
        await store.commit(Write("other", b"1", 0))
        connection = await store._reading.ready()

        async def pages(sql: str, *arguments: object) -> int:
            [[plan]] = await connection.fetch(
                f"explain (analyze, buffers, format json) {sql}", *arguments
            )
            root = json.loads(plan)[0]["Plan"]
            return int(root["Shared Hit Blocks"]) + int(root["Shared Read Blocks"])

        reads = store._reads
        assert len((await store.past("hot", before=10000, limit=10)).events) == 10
        assert await pages(reads._past, b"hot", 10000, 12) < 40
        for key in (b"hot", b"absent"):
            assert await pages(reads._get, key) < 10
        assert await pages(reads._page, b"", b"z", 0, 11) < 40
        assert await pages(reads._page, b"", b"z", 10000, 11) < 40


# -- space -----------------------------------------------------------------------------------------


async def test_two_stores_that_compact_at_once_sweep_everything(
    postgres: PostgresNode, schema: str, three: list[PostgresStore]
) -> None:
    revision = 0
    for number in range(40):
        revision = await three[0].commit(Write("a", b"%d" % number, revision))
    await asyncio.gather(*(store.compact(revision) for store in three))
    await three[0].compact(revision)
    assert postgres.sql(f"select count(*) from {schema}.log") == "1"


async def test_a_role_that_may_not_vacuum_is_told_of_once(
    postgres: PostgresNode,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("instar.wire.storage.postgres.compaction._VACUUM_ROWS", 1)
    async with opened(postgres.url(schema)) as owner:
        await owner.barrier()
    postgres.sql(f"create role {schema} login; grant usage on schema {schema} to {schema}")
    postgres.sql(f"grant select on all tables in schema {schema} to {schema}")
    postgres.sql(f"grant execute on all functions in schema {schema} to {schema}")
    async with opened(postgres.url(schema).replace("postgres@", f"{schema}@")) as store:
        revision = 0
        for number in range(4):
            revision = await store.commit(Write("a", b"%d" % number, revision))
            await store.compact(revision)
        [vacuums] = [m for m in store.metrics() if m.name == "instar_postgres_vacuums_total"]
        assert set(vacuums.family().series) == {("refused",)}
        assert store._server.facts is not None
        assert store._server.facts.timeline  # this role, too, can tell a promotion
    assert caplog.text.count("VACUUM is left to autovacuum") == 1
