"""What a store must do that commits several writes of one key at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Chaining, Event, Record, Stale, Store, ValueTooLarge, Write
from tests.contract.steps import put

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


CHAINING = pytest.mark.parametrize("store", ["memory", "sqlite"], indirect=True)
SQLITE = pytest.mark.parametrize("store", ["sqlite"], indirect=True)


@pytest.fixture
def chaining(store: Store) -> Chaining:
    assert isinstance(store, Chaining)
    return store


@CHAINING
async def test_each_value_of_a_chain_has_the_next_revision(
    store: Store, chaining: Chaining
) -> None:
    before = await put(store, "a")
    first = await chaining.commit_chain(Write("k", b"1", 0), [b"2", b"3"])
    assert first == before + 1
    assert await store.get("k") == Record("k", b"3", first + 2)
    assert await store.barrier() == first + 2
    for number, value in enumerate((b"1", b"2", b"3")):
        page = await store.range("k", revision=first + number)
        assert [record.value for record in page.records] == [value]


@CHAINING
async def test_followers_receive_every_value(store: Store, chaining: Chaining) -> None:
    told: list[Event] = []

    def tell(events: Sequence[Event], revision: int) -> None:
        told.extend(events)

    following = store.subscribe(await store.barrier(), tell, lambda error: None)
    first = await chaining.commit_chain(Write("k", b"1", 0), [b"2"])
    following.close()
    assert told == [Event("k", b"1", first), Event("k", b"2", first + 1)]


@CHAINING
async def test_nothing_of_a_stale_chain_is_written(store: Store, chaining: Chaining) -> None:
    revision = await put(store, "k", b"old")
    with pytest.raises(Stale):
        await chaining.commit_chain(Write("k", b"1", 0), [b"2"])
    assert await store.get("k") == Record("k", b"old", revision)
    assert await store.barrier() == revision


@CHAINING
async def test_of_two_chains_at_once_one_is_stale(store: Store, chaining: Chaining) -> None:
    outcomes = await asyncio.gather(
        chaining.commit_chain(Write("k", b"1", 0), [b"2"]),
        chaining.commit_chain(Write("k", b"3", 0), [b"4"]),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], int)
    assert isinstance(outcomes[1], Stale)
    assert outcomes[1].actual == outcomes[0] + 1


@CHAINING
async def test_the_next_write_builds_upon_the_last_of_a_chain(
    store: Store, chaining: Chaining
) -> None:
    first = await chaining.commit_chain(Write("k", b"1", 0), [b"2"])
    with pytest.raises(Stale):
        await put(store, "k", b"x", first)
    assert await put(store, "k", b"3", first + 1) == first + 2


@SQLITE
async def test_sqlite_commits_a_chain_in_one_transaction(store: Store) -> None:
    assert isinstance(store, SqliteStore)
    before = store.commits
    await store.commit_chain(Write("k", b"1", 0), [b"2", b"3"])
    assert store.commits == before + 1


@SQLITE
async def test_a_value_too_large_spoils_the_whole_chain(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(store, SqliteStore)
    monkeypatch.setattr(store, "_max_value", 3)
    before = await store.barrier()
    with pytest.raises(ValueTooLarge):
        await store.commit_chain(Write("k", b"1", 0), [b"long"])
    assert await store.get("k") is None
    assert await store.barrier() == before


@CHAINING
async def test_a_chain_that_is_accepted_but_not_visible_is_in_flight(
    store: Store, chaining: Chaining
) -> None:
    written = asyncio.gather(put(store, "crds/a"), put(store, "crds/b"))
    await asyncio.sleep(0)
    seen = await store.get("crds/b") is not None
    assert chaining.under_way("crds/") is not seen
    assert not chaining.under_way("others/")
    await written
    assert not chaining.under_way("crds/")
