"""A primary whose synchronous standby is away: a write is acknowledged when both have it, or not
at all, and no commit that waits is ever cancelled by us. Also two primaries."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from instar.wire.storage.postgres.store import PostgresStore
from instar.wire.storage.postgres.url import parse_url
from instar.wire.storage.store import StoreError, Unavailable, Write
from tests.storage.postgres_failover import FailoverPair, failover_pair
from tests.storage.postgres_server import PostgresNode
from tests.storage.test_postgres import opened

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]

_WAITING = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
async def pair(anyio_backend: str) -> AsyncIterator[FailoverPair]:
    async with failover_pair(synchronous=True) as started:
        yield started


@pytest.fixture
def schema() -> str:
    return f"w{uuid.uuid4().hex}"


@asynccontextmanager
async def standby_away(pair: FailoverPair) -> AsyncIterator[None]:
    await asyncio.to_thread(pair.standby.stop, "fast")
    try:
        yield
    finally:
        await asyncio.to_thread(pair.standby.start)


async def until(node: PostgresNode, query: str, answer: str) -> None:
    async with asyncio.timeout(30):
        while await asyncio.to_thread(node.sql, query) != answer:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def waiting(name: str) -> str:
    return f"{_WAITING} and application_name = 'instar/{name}'"


async def test_a_write_without_its_standby_is_unknown_and_settles_when_it_returns(
    pair: FailoverPair, schema: str
) -> None:
    node = pair.primary
    async with opened(node.url(schema), 2) as store:
        before = await store.commit(Write("g/p/before", b"1", 0))
        async with standby_away(pair):
            with pytest.raises(Unavailable, match="not known"):
                await store.commit(Write("g/p/waits", b"1", 0))
            with pytest.raises(Unavailable, match="nothing was written"):
                await store.commit(Write("g/p/queues", b"1", 0))
            assert await store.barrier() == before  # reads go on and show what is safe
            assert await store.get("g/p/waits") is None
        await until(node, f"select count(*) from {schema}.log where key = 'g/p/waits'", "1")
        after = await store.commit(Write("g/p/after", b"1", 0))
        assert after == before + 2  # the write that waited is there once, the refused one is not
        assert await store.get("g/p/queues") is None
    assert "due to user request" not in node.log.read_text()


async def test_a_commit_that_an_administrator_cancels_is_not_acknowledged_before_it_is_safe(
    pair: FailoverPair, schema: str
) -> None:
    node = pair.primary
    async with opened(node.url(schema), 60) as store:
        await store.commit(Write("g/p/before", b"1", 0))
        async with standby_away(pair):
            writing = asyncio.ensure_future(store.commit(Write("g/p/a", b"1", 0)))
            await until(node, waiting("write"), "1")
            node.sql(
                "select pg_cancel_backend(pid) from pg_stat_activity "
                "where application_name = 'instar/write' and wait_event = 'SyncRep'"
            )
            await until(node, waiting("settle"), "1")
            assert not writing.done()
            assert node.sql(f"select count(*) from {schema}.log") == "2"  # visible, and not safe
        found = await asyncio.wait_for(writing, 30)
        assert node.sql(f"select revision from {schema}.log where key = 'g/p/a'") == str(found)
        assert pair.standby.sql(f"select count(*) from {schema}.log") == "2"


async def test_a_store_that_is_closed_does_not_cancel_a_commit_that_waits(
    pair: FailoverPair, schema: str
) -> None:
    node = pair.primary
    text = node.log.read_text()
    store = PostgresStore(parse_url(node.url(schema), timeout=2))
    await store.commit(Write("g/p/before", b"1", 0))
    async with standby_away(pair):
        writing = asyncio.ensure_future(store.commit(Write("g/p/a", b"1", 0)))
        await until(node, waiting("write"), "1")
        await store.close()
        with pytest.raises(Unavailable):
            await writing
        assert node.sql(f"select count(*) from {schema}.log") == "1"
        assert node.sql(waiting("write")) == "1"
    await until(node, f"select count(*) from {schema}.log", "2")
    assert "due to user request" not in node.log.read_text()[len(text) :]


async def test_no_role_can_turn_the_wait_for_the_standby_off(
    pair: FailoverPair, schema: str
) -> None:
    node = pair.primary
    # In a thread: a commit waits for the standby, whose link passes through this loop.
    await asyncio.to_thread(node.sql, f"create role {schema} superuser login")
    await asyncio.to_thread(node.sql, f"alter role {schema} set synchronous_commit = local")
    url = node.url(schema).replace("postgres@", f"{schema}@")
    async with opened(url, 2) as store:
        await store.commit(Write("g/p/before", b"1", 0))
        async with standby_away(pair):
            with pytest.raises(Unavailable, match="not known"):
                await store.commit(Write("g/p/a", b"1", 0))
    async with opened(f"{url}&feed=poll", 2) as pooled:
        with pytest.raises(StoreError, match="synchronous_commit"):
            await pooled.barrier()


async def test_strict_reads_need_the_standby_and_leave_no_connections_behind(
    pair: FailoverPair, schema: str
) -> None:
    node = pair.primary
    async with (
        opened(f"{node.url(schema)}&strict_reads=on", 1) as strict,
        opened(node.url(schema), 5) as plain,
    ):
        revision = await strict.barrier()
        async with standby_away(pair):
            for _ in range(4):
                with pytest.raises(Unavailable):
                    await strict.barrier()
            assert await plain.barrier() == revision
            await until(
                node,
                "select count(*) <= 3 from pg_stat_activity "
                "where application_name = 'instar/barrier'",
                "t",
            )
        assert await strict.barrier() == revision


async def test_a_primary_that_was_replaced_is_never_used_again() -> None:
    """Split brain: the standby is promoted while the primary lives on, and both take writes."""
    async with failover_pair(synchronous=False) as pair:
        old, new = pair.primary, pair.standby
        async with opened(pair.url("split", old, new), 5) as store:
            await store.commit(Write("g/p/before", b"1", 0))
            await until(new, "select count(*) from split.log", "1")
            await asyncio.to_thread(new.promote)
            old.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where application_name like 'instar/%'"
            )
            await until_refused_by_the_old(store, new)
            await asyncio.to_thread(new.stop)
            with pytest.raises(Unavailable, match="replaced primary"):
                await store.barrier()
            await asyncio.to_thread(new.start)
            assert await store.get("g/p/new") is not None


async def until_refused_by_the_old(store: PostgresStore, new: PostgresNode) -> None:
    """Write until the new primary has it: a connection to the old one ends when any of ours finds
    the new one."""
    async with asyncio.timeout(30):
        number = 0
        while True:
            number += 1
            await store.commit(Write(f"g/p/{number}", b"1", 0))
            if new.sql(f"select count(*) from split.log where key = 'g/p/{number}'") == "1":
                break
    await store.commit(Write("g/p/new", b"1", 0))
