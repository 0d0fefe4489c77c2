from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from instar.wire.storage.copy import Copied, copy_store
from instar.wire.storage.etcd.client import EtcdOptions
from instar.wire.storage.etcd.store import EtcdStore
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Page, Record, Store, StoreError, Write
from tests.storage.etcd_server import EtcdCluster

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


async def filled(store: Store, count: int) -> Store:
    for number in range(count):
        await store.commit(Write(f"g/p/{number:04}", b"%d" % number * 10, 0))
    return store


async def content(store: Store) -> list[tuple[str, bytes]]:
    return [(record.key, record.value) for record in (await store.range("")).records]


@pytest.mark.parametrize("count", [0, 1, 500, 1203])
async def test_everything_is_copied_counted_and_verified(count: int) -> None:
    source, target = await filled(MemoryStore(), count), MemoryStore()
    steps: list[tuple[str, int, int]] = []
    copied = await copy_store(source, target, lambda *step: steps.append(step))
    assert await content(target) == await content(source)
    size = sum(len(value) for _, value in await content(source))
    assert copied == Copied(count, size)
    if count:
        assert steps[-1] == ("verify", count, count)


async def test_from_sqlite_to_etcd_and_back(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, members=1) as cluster:
        first = await filled(SqliteStore(str(tmp_path / "a.db")), 700)
        there = EtcdStore(cluster.addresses, options=EtcdOptions(timeout=20))
        back = SqliteStore(str(tmp_path / "b.db"))
        await copy_store(first, there)
        await copy_store(there, back)
        assert await content(back) == await content(first)
        for store in (first, there, back):
            await store.close()


async def test_a_target_that_is_not_empty_is_refused_and_left_alone() -> None:
    source, target = await filled(MemoryStore(), 3), await filled(MemoryStore(), 1)
    before = await content(target)
    with pytest.raises(StoreError, match="not empty"):
        await copy_store(source, target)
    assert await content(target) == before


class Forgetful(MemoryStore):
    """Acknowledges, and shows something else afterwards."""

    def __init__(self, change: str) -> None:
        super().__init__()
        self._change = change

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        page = await super().range(prefix, start=start, limit=limit, revision=revision)
        return page._replace(records=self._changed(page.records))

    def _changed(self, records: Sequence[Record]) -> Sequence[Record]:
        if not records or self._change == "drop":
            return records[:-1]
        if self._change == "alter":
            return [*records[:-1], records[-1]._replace(value=b"altered")]
        return [*records, Record("z", b"extra", 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [("drop", "differs"), ("alter", "differs"), ("add", "does not")],
)
async def test_a_copy_that_did_not_arrive_is_reported(change: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        await copy_store(await filled(MemoryStore(), 5), Forgetful(change))
