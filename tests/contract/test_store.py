"""What every ``Store`` must do, on every backend there is: reading and writing."""

from __future__ import annotations

import asyncio

import pytest

from instar.wire.storage.store import Ahead, Record, Stale, Store, Write
from tests.contract.steps import delete, keys, put

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


# -- reading one key


async def test_an_absent_key_reads_as_none(store: Store) -> None:
    assert await store.get("nothing") is None


async def test_a_written_key_reads_back_with_the_revision_of_its_write(store: Store) -> None:
    revision = await put(store, "a", b"one")
    await put(store, "b")
    assert await store.get("a") == Record("a", b"one", revision)


async def test_any_bytes_are_kept_as_they_are(store: Store) -> None:
    for key, value in {"empty": b"", "zeros": b"\0\xff\0", "big": b"x" * 1_000_000}.items():
        revision = await put(store, key, value)
        assert await store.get(key) == Record(key, value, revision)


async def test_keys_may_hold_any_text(store: Store) -> None:
    for key in ("a b", "ü/日本", "%41", "a'\"\\", "x\U0001f41b"):
        revision = await put(store, key)
        assert await store.get(key) == Record(key, b"v", revision)


async def test_a_deleted_key_is_absent(store: Store) -> None:
    await delete(store, "a", await put(store, "a"))
    assert await store.get("a") is None


# -- writing


async def test_an_empty_store_has_a_positive_revision(store: Store) -> None:
    assert await store.barrier() >= 1


async def test_every_write_raises_the_revision(store: Store) -> None:
    start = await store.barrier()
    first = await put(store, "a")
    second = await put(store, "b")
    third = await delete(store, "a", first)
    assert start < first < second < third


async def test_creating_an_existing_key_is_stale_and_changes_nothing(store: Store) -> None:
    revision = await put(store, "a", b"old")
    with pytest.raises(Stale) as caught:
        await put(store, "a", b"new")
    assert (caught.value.key, caught.value.expected, caught.value.actual) == ("a", 0, revision)
    assert await store.get("a") == Record("a", b"old", revision)
    assert await store.barrier() == revision


@pytest.mark.parametrize("value", [b"new", None])
async def test_an_outdated_revision_is_stale(store: Store, value: bytes | None) -> None:
    first = await put(store, "a")
    second = await put(store, "a", b"2", first)
    with pytest.raises(Stale) as caught:
        await store.commit(Write("a", value, first))
    assert caught.value.actual == second


@pytest.mark.parametrize("value", [b"new", None])
async def test_changing_an_absent_key_is_stale(store: Store, value: bytes | None) -> None:
    with pytest.raises(Stale) as caught:
        await store.commit(Write("a", value, 7))
    assert caught.value.actual == 0


async def test_a_deleted_key_can_be_created_again(store: Store) -> None:
    gone = await delete(store, "a", await put(store, "a"))
    again = await put(store, "a", b"again")
    assert again > gone
    assert await store.get("a") == Record("a", b"again", again)


async def test_deleting_without_a_revision_is_refused(store: Store) -> None:
    with pytest.raises(ValueError):
        await store.commit(Write("a", None, 0))


async def test_of_concurrent_writers_with_one_revision_exactly_one_wins(store: Store) -> None:
    revision = await put(store, "a", b"0")

    async def attempt(number: int) -> int | Stale:
        try:
            return await put(store, "a", b"%d" % number, revision)
        except Stale as stale:
            return stale

    results = await asyncio.gather(*(attempt(number) for number in range(20)))
    winners = [result for result in results if isinstance(result, int)]
    assert len(winners) == 1
    assert {result.actual for result in results if isinstance(result, Stale)} == {winners[0]}


async def test_a_stale_answer_is_never_ahead_of_what_can_be_read(store: Store) -> None:
    revision = await put(store, "a", b"0")

    async def add_one() -> None:
        expected, value = revision, b"0"
        while True:
            try:
                await put(store, "a", b"%d" % (int(value) + 1), expected)
            except Stale as stale:
                told = stale.actual
            else:
                return
            found = await store.get("a")
            assert found is not None
            assert found.revision >= told
            expected, value = found.revision, found.value

    await asyncio.gather(*(add_one() for _ in range(20)))
    found = await store.get("a")
    assert found is not None
    assert found.value == b"20"


async def test_concurrent_writers_of_different_keys_all_succeed(store: Store) -> None:
    revisions = await asyncio.gather(*(put(store, f"k{number}") for number in range(100)))
    assert len(set(revisions)) == 100
    assert len(await keys(store)) == 100


# -- ranges


async def test_a_range_is_in_byte_order_of_keys(store: Store) -> None:
    for key in ("b", "a/", "a", "a!", "ü", "Z", "\U0001f41b", "\uffee"):
        await put(store, key)
    assert await keys(store) == ["Z", "a", "a!", "a/", "b", "ü", "\uffee", "\U0001f41b"]


async def test_a_range_holds_the_keys_with_the_prefix_only(store: Store) -> None:
    for key in ("g/a/x", "g/ab/x", "g/a", "g/a0", "h"):
        await put(store, key)
    assert await keys(store, "g/a/") == ["g/a/x"]
    assert await keys(store, "g/a") == ["g/a", "g/a/x", "g/a0", "g/ab/x"]
    assert await keys(store, "nothing") == []


async def test_a_range_says_what_revision_it_shows(store: Store) -> None:
    await put(store, "a")
    last = await put(store, "other")
    assert (await store.range("a")).revision == last
    assert (await store.range("nothing")).revision == last


async def test_pages_cover_the_range_without_gap_or_repeat(store: Store) -> None:
    written = [f"p/{number:03}" for number in range(25)]
    for key in written:
        await put(store, key)
    await put(store, "q")
    seen: list[str] = []
    start, more = "", True
    while more:
        page = await store.range("p/", start=start, limit=10)
        seen += [record.key for record in page.records]
        start, more = seen[-1] + "\0", page.more
    assert seen == written


@pytest.mark.parametrize(("limit", "more"), [(1, True), (2, True), (3, False), (4, False)])
async def test_a_range_reports_exactly_whether_there_is_more(
    store: Store, limit: int, more: bool
) -> None:
    for key in ("p/a", "p/b", "p/c", "q"):
        await put(store, key)
    page = await store.range("p/", limit=limit)
    assert (len(page.records), page.more) == (min(limit, 3), more)


async def test_a_start_below_the_prefix_changes_nothing(store: Store) -> None:
    await put(store, "p/a")
    page = await store.range("p/", start="a")
    assert [record.key for record in page.records] == ["p/a"]


async def test_an_older_revision_shows_the_past(store: Store) -> None:
    one = await put(store, "a", b"1")
    two = await put(store, "b", b"2")
    three = await put(store, "a", b"3", one)
    four = await delete(store, "b", two)
    five = await put(store, "b", b"5")

    async def state(revision: int) -> dict[str, bytes]:
        page = await store.range("", revision=revision)
        assert page.revision == revision
        return {record.key: record.value for record in page.records}

    assert await state(one) == {"a": b"1"}
    assert await state(two) == {"a": b"1", "b": b"2"}
    assert await state(three) == {"a": b"3", "b": b"2"}
    assert await state(four) == {"a": b"3"}
    assert await state(five) == {"a": b"3", "b": b"5"}


async def test_pages_of_one_revision_ignore_later_writes(store: Store) -> None:
    for key in ("a", "b", "c"):
        revision = await put(store, key)
    first = await store.range("", limit=1)
    await delete(store, "c", revision)
    await put(store, "bb")
    rest = await store.range("", start="a\0", limit=5, revision=first.revision)
    assert [record.key for record in rest.records] == ["b", "c"]
    assert not rest.more


async def test_a_future_revision_is_refused(store: Store) -> None:
    with pytest.raises(Ahead):
        await store.range("", revision=await store.barrier() + 10)
