"""What is particular to the SQLite store: its file, its transactions, its memory of revisions."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from instar.wire.storage.open import open_store
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Compacted, Event, Record, StoreError, Unavailable, Write
from tests.storage.recorder import Recorder

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s.db")


async def test_all_data_is_present_after_reopening(path: str) -> None:
    store = SqliteStore(path)
    one = await store.commit(Write("a", b"1", 0))
    two = await store.commit(Write("a", b"2", one))
    three = await store.commit(Write("b", b"3", 0))
    four = await store.commit(Write("b", None, three))
    await store.close()

    store = SqliteStore(path)
    assert (await store.range("")).records == [Record("a", b"2", two)]
    assert (await store.range("", revision=three)).records == [
        Record("a", b"2", two),
        Record("b", b"3", three),
    ]
    recorder = Recorder(store, after=two)
    assert recorder.events == [Event("b", b"3", three), Event("b", None, four)]
    assert await store.commit(Write("c", b"", 0)) > four
    await store.close()


async def test_only_the_owner_may_read_the_files(path: str) -> None:
    store = SqliteStore(path)
    await store.commit(Write("secret", b"1", 0))
    modes = {file.name: file.stat().st_mode & 0o777 for file in Path(path).parent.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    await store.close()


async def test_revisions_never_go_back_even_when_nothing_is_left(path: str) -> None:
    store = SqliteStore(path)
    gone = await store.commit(Write("a", None, await store.commit(Write("a", b"1", 0))))
    await store.compact(gone)
    await store.close()

    store = SqliteStore(path)
    assert await store.barrier() == gone
    assert await store.commit(Write("a", b"1", 0)) == gone + 1
    await store.close()


async def test_the_compacted_revision_is_remembered(path: str) -> None:
    store = SqliteStore(path)
    one = await store.commit(Write("a", b"1", 0))
    two = await store.commit(Write("a", b"2", one))
    await store.compact(two)
    await store.close()

    store = SqliteStore(path)
    with pytest.raises(Compacted):
        await store.range("", revision=one)
    with pytest.raises(Compacted):
        Recorder(store, after=one)
    await store.close()


async def test_compaction_leaves_one_row_per_live_key(path: str) -> None:
    store = SqliteStore(path)
    for key in ("a", "b", "c"):
        revision = 0
        for number in range(400):
            revision = await store.commit(Write(key, b"%d" % number, revision))
    revision = await store.commit(Write("c", None, revision))
    await store.compact(revision)
    await store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (2,)
    connection.close()


async def test_concurrent_writers_share_transactions(path: str) -> None:
    store = SqliteStore(path)

    async def write(name: int) -> None:
        revision = 0
        for number in range(10):
            revision = await store.commit(Write(f"k{name}", b"%d" % number, revision))

    await asyncio.gather(*(write(name) for name in range(50)))
    assert store.commits <= 20
    await store.close()


async def test_accepted_writes_are_finished_before_closing(path: str) -> None:
    store = SqliteStore(path)
    writes = [asyncio.ensure_future(store.commit(Write(f"k{n}", b"", 0))) for n in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert len({await write for write in writes}) == 20


async def test_a_writer_that_gives_up_does_not_take_the_write_back(path: str) -> None:
    store = SqliteStore(path)
    write = asyncio.ensure_future(store.commit(Write("a", b"1", 0)))
    await asyncio.sleep(0)
    write.cancel()
    other = await store.commit(Write("b", b"2", 0))
    assert [record.key for record in (await store.range("", revision=other)).records] == ["a", "b"]
    await store.close()


async def test_every_commit_waits_for_the_disk(path: str) -> None:
    store = SqliteStore(path)
    writer = store._file.writer
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,)
    await store.close()


async def test_a_file_left_in_rollback_mode_gets_its_log_back(path: str) -> None:
    await SqliteStore(path).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    connection.close()
    store = SqliteStore(path)
    revision = await store.commit(Write("a", b"1", 0))
    assert await store.get("a") == Record("a", b"1", revision)
    assert store._file.writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await store.close()


async def test_another_programs_lock_makes_writes_unavailable_and_reads_continue(path: str) -> None:
    store = SqliteStore(path)
    revision = await store.commit(Write("a", b"1", 0))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked"):
        await store.commit(Write("a", b"2", revision))
    assert await store.get("a") == Record("a", b"1", revision)
    other.close()
    assert await store.commit(Write("a", b"2", revision)) > revision
    await store.close()


async def test_a_large_range_reads_the_same_as_small_ones(path: str) -> None:
    store = SqliteStore(path)
    await asyncio.gather(*(store.commit(Write(f"k{n:04}", b"%d" % n, 0)) for n in range(1500)))
    page = await store.range("")
    assert [int(record.value) for record in page.records] == list(range(1500))
    await store.close()


async def test_the_url_names_the_backend(path: str) -> None:
    for url in ("memory:", f"sqlite:{path}"):
        store = await open_store(url)
        await store.commit(Write("a", b"", 0))
        await store.close()
    for url in ("", "sqlite:", "mysql://x", "memory:x"):
        with pytest.raises(StoreError, match="not a storage URL"):
            await open_store(url)
