"""The feed of the PostgreSQL store when its connection, its notification or its history is lost."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from instar.wire.storage.postgres.feed import PostgresFeed
from instar.wire.storage.postgres.store import PostgresStore
from instar.wire.storage.store import StoreError, Unavailable, Write
from tests.storage.postgres_server import PostgresNode
from tests.storage.proxy import Proxy
from tests.storage.recorder import Recorder
from tests.storage.test_postgres import opened
from tests.support.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]

_FEED = "instar.wire.storage.postgres.feed"


@pytest.fixture
def schema() -> str:
    return f"e{uuid.uuid4().hex}"


@pytest.fixture
async def writer(postgres: PostgresNode, schema: str) -> AsyncIterator[PostgresStore]:
    async with opened(postgres.url(schema), 20) as store:
        await store.barrier()
        yield store


@pytest.fixture
async def proxy(postgres: PostgresNode) -> AsyncIterator[Proxy]:
    proxy = Proxy(postgres.address)
    yield proxy
    await proxy.stop()


@pytest.fixture
async def away(
    postgres: PostgresNode, schema: str, writer: PostgresStore, proxy: Proxy
) -> AsyncIterator[PostgresStore]:
    """A store whose connections pass through the proxy."""
    url = postgres.url(schema).replace(postgres.address, await proxy.start())
    async with opened(url, 2) as store:
        yield store


def counted(store: PostgresStore) -> int:
    return int(store._metrics.feed_reads.value())


async def test_a_network_that_goes_silent_is_noticed_and_no_event_is_lost(
    writer: PostgresStore, away: PostgresStore, proxy: Proxy
) -> None:
    recorder = Recorder(away, after=await away.barrier())
    await recorder.reached(await writer.commit(Write("g/p/before", b"1", 0)))
    proxy.freeze()
    last = 0
    for number in range(5):
        last = await writer.commit(Write(f"g/p/{number}", b"1", 0))
    await recorder.reached(last)
    assert [event.revision for event in recorder.events] == list(range(2, last + 1))


async def test_a_feed_that_stands_still_ends_its_subscriptions(
    writer: PostgresStore, away: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{_FEED}._STUCK_SECONDS", 0.2)
    monkeypatch.setattr(f"{_FEED}._STALLED_SECONDS", 1.0)
    recorder = Recorder(away, after=await away.barrier())
    await recorder.reached(await writer.commit(Write("g/p/before", b"1", 0)))
    proxy.swallow_answers = True
    away.expect(await writer.commit(Write("g/p/a", b"1", 0)))
    with pytest.raises(Unavailable, match="the feed stands at revision"):
        await recorder.reached(1000)
    proxy.swallow_answers = False
    proxy.freeze()


async def test_many_writes_cost_few_reads_and_own_ones_none(
    postgres: PostgresNode, schema: str, writer: PostgresStore
) -> None:
    async with opened(postgres.url(schema), 20) as reader:
        mine = Recorder(writer, after=await writer.barrier())
        theirs = Recorder(reader, after=await reader.barrier())
        await mine.reached(await writer.commit(Write("g/p/first", b"1", 0)))
        await theirs.reached(2)
        before = counted(writer), counted(reader)
        for part in range(30):
            await asyncio.gather(
                *(writer.commit(Write(f"g/p/{part}-{n}", b"1", 0)) for n in range(100))
            )
        end = await writer.barrier()
        await mine.reached(end)
        await theirs.reached(end)
        assert [event.revision for event in theirs.events] == list(range(2, 3003))
        # One for each batch at most; the writer has but the safety read, every five seconds.
        assert counted(reader) - before[1] <= 32 + 30
        assert counted(writer) - before[0] <= 15


async def test_a_follower_that_begins_during_a_read_misses_nothing(
    postgres: PostgresNode, schema: str, writer: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read is for followers that have more already."""
    start = await writer.barrier()
    live = Recorder(writer, after=start)
    last = await writer.commit(Write("g/p/a", b"1", 0))
    await live.reached(last)
    late: list[Recorder] = []
    begun = asyncio.Event()
    deliver = PostgresFeed._deliver

    def subscribe_first(self: PostgresFeed, after: int, *read: Any) -> bool:
        if after == last and not late:
            late.append(Recorder(writer, after=start))
            begun.set()
        return deliver(self, after, *read)

    monkeypatch.setattr(PostgresFeed, "_deliver", subscribe_first)
    postgres.sql(f"select pg_notify('{schema}', '')")
    async with asyncio.timeout(20):
        await begun.wait()
    await late[0].reached(last)

    assert late[0].events == live.events


@pytest.mark.parametrize("payload", ["", "7", "no number"])
async def test_whatever_a_notification_says_causes_a_read_and_nothing_else(
    postgres: PostgresNode, schema: str, writer: PostgresStore, payload: str
) -> None:
    """Any role that may connect to the database may notify, and listen: so a notification carries
    no event, which others could invent or read."""
    recorder = Recorder(writer, after=await writer.barrier())
    last = await writer.commit(Write("g/p/a", b"1", 0))
    await recorder.reached(last)
    before = counted(writer)
    postgres.sql(f"select pg_notify('{schema}', '{payload}')")
    for _ in range(200):
        if counted(writer) > before:
            break
        await asyncio.sleep(0.02)
    assert counted(writer) > before
    assert len(recorder.events) == 1


async def test_the_listening_connection_has_no_transaction_and_nothing_else_listens(
    postgres: PostgresNode, schema: str, writer: PostgresStore
) -> None:
    recorder = Recorder(writer, after=await writer.barrier())
    await recorder.reached(await writer.commit(Write("g/p/a", b"1", 0)))
    mine = "application_name like 'instar/%' and query like '%" + schema + "%'"
    idle = f"select distinct state, xact_start from pg_stat_activity where {mine}"
    eventually(lambda: postgres.sql(idle) == "idle|")  # it may just be reading
    for link, channels in (
        (writer._writing, [schema]),
        (writer._feed._link, []),
        (writer._asking, []),
    ):
        listens = await link.ask("select pg_listening_channels()")
        assert [row[0] for row in listens] == channels


async def test_own_events_alone_are_enough_to_notice_another_history(
    postgres: PostgresNode, schema: str, writer: PostgresStore
) -> None:
    """A restore of an older state that has grown past what this process wrote itself."""
    recorder = Recorder(writer, after=await writer.barrier())
    for number in range(3):
        await recorder.reached(await writer.commit(Write(f"g/p/{number}", b"old", 0)))
    postgres.sql(
        f"begin; delete from {schema}.log where revision > 2; "
        f"insert into {schema}.log select n, 0, 77, ('x' || n)::bytea, 'new' "
        f"from generate_series(3, 9) n; update {schema}.head set revision = 9; "
        f"select pg_notify('{schema}', '9'); commit"
    )
    with pytest.raises(StoreError, match="history went back"):
        await recorder.reached(1000)


async def test_a_full_disk_stops_writes_and_nothing_else(
    postgres: PostgresNode, schema: str, writer: PostgresStore
) -> None:
    revision = await writer.commit(Write("g/p/a", b"1", 0))
    postgres.sql(
        f"create function {schema}.full() returns trigger language plpgsql as $$ begin "
        "raise exception 'could not extend file' using errcode = '53100'; end $$; "
        f"create trigger no_space before insert on {schema}.log execute function {schema}.full()"
    )
    for _ in range(2):
        with pytest.raises(Unavailable, match="disk is full"):
            await writer.commit(Write("g/p/b", b"1", 0))
    assert await writer.barrier() == revision
    postgres.sql(f"drop trigger no_space on {schema}.log")
    assert await writer.commit(Write("g/p/b", b"1", 0)) == revision + 1
