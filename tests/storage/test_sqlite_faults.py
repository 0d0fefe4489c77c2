"""What the SQLite store does when the process, the disk or the file lets it down."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Event, StoreError, Unavailable, Write
from instar.wire.storage.verify import verify_file
from tests.storage.recorder import Recorder
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


def start_writer(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.storage.crash_writer", str(path)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )


async def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path, dice = tmp_path / "s.db", random.Random(5)
    acknowledged: dict[str, tuple[int, int]] = {}
    highest = 0
    for _ in range(25):
        writer = start_writer(path)
        assert writer.stdout is not None
        told = [writer.stdout.readline() for _ in range(dice.randrange(1, 400))]
        writer.kill()
        told += writer.stdout.read().splitlines(keepends=True)
        writer.wait()
        writer.stdout.close()
        for line in told:
            if line.endswith(b"\n"):
                name, count, revision = line.split()
                acknowledged[name.decode()] = (int(count), int(revision))

        store = SqliteStore(str(path))
        for key, last in acknowledged.items():
            found = await store.get(key)
            assert found is not None
            assert (int(found.value), found.revision) >= last
            assert int(found.value) - last[0] <= 1  # one write may be durable and not yet told
            # What was read back is known too: the next writer starts from there, told or not.
            acknowledged[key] = (int(found.value), found.revision)
        highest, before = await store.barrier(), highest
        assert highest > before
        await store.close()


async def test_a_second_process_is_refused_by_name_and_pid(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    writer = start_writer(path)
    assert writer.stdout is not None
    writer.stdout.readline()
    with pytest.raises(StoreError, match=rf"s\.db: in use by another process \(pid {writer.pid}\)"):
        SqliteStore(str(path))
    writer.kill()
    writer.wait()
    writer.stdout.close()
    await SqliteStore(str(path)).close()


async def test_a_file_is_opened_once_even_in_one_process_and_through_a_link(
    tmp_path: Path,
) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    (tmp_path / "link.db").symlink_to("s.db")
    with pytest.raises(StoreError, match="in use"):
        SqliteStore(str(tmp_path / "link.db"))
    await store.close()


# -- files that are not ours, or no longer whole


def text_file(path: Path) -> None:
    path.write_bytes(b"apiVersion: v1\n" * 100)


def short_file(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0")


def foreign_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE log(revision INTEGER PRIMARY KEY, key TEXT, value BLOB)")
    connection.close()


def newer_format(path: Path) -> None:
    good_database(path)
    content = bytearray(path.read_bytes())
    content[60:64] = (99).to_bytes(4, "big")
    path.write_bytes(content)


def truncated(path: Path) -> None:
    good_database(path)
    path.write_bytes(path.read_bytes()[: 20 * 4096])


def scribbled(path: Path) -> None:
    good_database(path)
    content = bytearray(path.read_bytes())
    content[4096 : 40 * 4096] = random.Random(1).randbytes(39 * 4096)
    path.write_bytes(content)


def good_database(path: Path) -> None:
    async def fill() -> None:
        store = SqliteStore(str(path))
        writes = (store.commit(Write(f"k{n}", b"x" * 1400, 0)) for n in range(200))
        await asyncio.gather(*writes)
        await store.close()

    asyncio.run(fill())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (text_file, "not a SQLite database"),
        (short_file, "not a SQLite database"),
        (foreign_database, "of another program"),
        (newer_format, "has format 99"),
        (truncated, "cannot be opened: database disk image is malformed"),
        (scribbled, "cannot be opened: database disk image is malformed"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_and_left_untouched(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "s.db"
    damage(path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match=message) as caught:
            SqliteStore(str(path))
        assert str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_a_damaged_file_with_a_log_beside_it_keeps_both(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    writer = start_writer(path)
    assert writer.stdout is not None
    for _ in range(50):
        writer.stdout.readline()
    writer.kill()
    writer.wait()
    writer.stdout.close()
    log = path.with_name("s.db-wal")
    content = bytearray(path.read_bytes())
    content[:100] = b"\0" * 100
    path.write_bytes(content)
    before = (path.read_bytes(), log.read_bytes())
    with pytest.raises(StoreError):
        SqliteStore(str(path))
    assert (path.read_bytes(), log.read_bytes()) == before


@pytest.mark.parametrize("path", ["missing/s.db", "."])
def test_a_path_that_cannot_hold_a_file_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(StoreError):
        SqliteStore(str(tmp_path / path))


# -- a full disk


class FullDisk:
    """Lets files grow no further while it is on: what a full disk does to an append-only log."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    @contextmanager
    def full(self) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._limit, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def write_until_full(store: SqliteStore) -> dict[str, int]:
    acknowledged: dict[str, int] = {}
    for number in range(2000):
        key = f"k{number}"
        try:
            acknowledged[key] = await store.commit(Write(key, b"x" * 5000, 0))
        except Unavailable:
            return acknowledged
    raise AssertionError("the disk was never full")


async def check_recovery(path: Path, store: SqliteStore, acknowledged: dict[str, int]) -> None:
    """With space again, the same store goes on; memory, disk and followers agree."""
    recorder = Recorder(store, after=0)
    acknowledged["after"] = await store.commit(Write("after", b"x", 0))
    page = await store.range("")
    assert {record.key: record.revision for record in page.records} == acknowledged
    assert {event.key: event.revision for event in recorder.events} == acknowledged
    await store.close()
    reopened = SqliteStore(str(path))
    assert (await reopened.range("")).records == page.records
    await reopened.close()


async def test_a_full_disk_fails_writes_and_the_store_recovers_when_space_is_back(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path, "2m"):
        filler = tmp_path / "filler"
        filler.write_bytes(b"x" * 1_000_000)
        store = SqliteStore(str(tmp_path / "s.db"))
        acknowledged = await write_until_full(store)
        found = await store.get("k0")
        assert found is not None
        os.unlink(filler)
        await check_recovery(tmp_path / "s.db", store, acknowledged)


async def test_a_file_size_limit_is_a_full_disk(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    with FullDisk(1_000_000).full():
        acknowledged = await write_until_full(store)
    assert acknowledged
    await check_recovery(tmp_path / "s.db", store, acknowledged)


async def test_a_failed_transaction_fails_its_writers_and_the_writes_based_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow disk: only there do writes wait behind a transaction that is on its way.
    monkeypatch.setattr("instar.wire.storage.group_commit._FAST_COMMIT_SECONDS", 0.0)
    store = SqliteStore(str(tmp_path / "s.db"))
    old = await store.commit(Write("old", b"1", 0))
    recorder = Recorder(store, after=old)
    with FullDisk(200_000).full():
        too_big = asyncio.ensure_future(store.commit(Write("big", b"x" * 400_000, 0)))
        innocent = asyncio.ensure_future(store.commit(Write("old", None, old)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # the transaction is on its way; these wait for the next one
        chained = asyncio.ensure_future(store.commit(Write("old", b"again", 0)))
        contender = asyncio.ensure_future(store.commit(Write("old", b"2", old)))
        independent = asyncio.ensure_future(store.commit(Write("small", b"x", 0)))
        for failing in (too_big, innocent, chained):
            with pytest.raises(Unavailable):
                await failing
        revisions = [await independent, await contender]
    await store.compact(await store.barrier())
    assert recorder.events == [
        Event("small", b"x", revisions[0]),
        Event("old", b"2", revisions[1]),
    ]
    assert [record.value for record in (await store.range("")).records] == [b"2", b"x"]
    await store.close()


async def test_a_connection_that_cannot_roll_back_fails_all_waiting_writers(
    tmp_path: Path,
) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    store._file.writer.close()
    for _ in range(2):
        with pytest.raises(Unavailable):
            await asyncio.wait_for(store.commit(Write("a", b"1", 0)), 10)
    await store.close()


def test_nothing_of_an_open_store_is_mapped_into_memory(tmp_path: Path) -> None:
    """Whoever cut SQLite's ``-shm`` short killed the process with SIGBUS."""
    path, leftover = tmp_path / "s.db", tmp_path / "s.db-shm"
    leftover.write_bytes(b"x" * 100)

    async def write() -> SqliteStore:
        store = SqliteStore(str(path))
        await store.commit(Write("a", b"1", 0))
        return store

    store = asyncio.run(write())

    assert not leftover.exists()
    maps = Path("/proc/self/maps")
    if maps.exists():
        assert str(path) not in maps.read_text()
    asyncio.run(store.close())


def test_a_store_in_use_is_not_verified_and_its_owner_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    writer = start_writer(path)
    assert writer.stdout is not None
    writer.stdout.readline()
    with pytest.raises(StoreError, match=rf"in use by another process \(pid {writer.pid}\)"):
        verify_file(str(path), lambda key, value: True)
    writer.kill()
    writer.wait()
    writer.stdout.close()
    assert verify_file(str(path), lambda key, value: True).problems == []
