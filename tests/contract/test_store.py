"""What every ``Store`` must do, run against every backend there is."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from instar.storage.etcd import EtcdStore
from instar.storage.etcd_client import EtcdOptions
from instar.storage.memory import MemoryStore
from instar.storage.sqlite import SqliteStore
from instar.storage.store import (
    Ahead,
    Compacted,
    Event,
    Record,
    Replayable,
    Stale,
    Store,
    StoreError,
    Unavailable,
    Write,
)
from tests.storage.etcd_server import EtcdCluster
from tests.storage.recorder import Recorder

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]

BACKENDS = ["memory", "sqlite", "etcd"]


@pytest.fixture(scope="module")
def etcd_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), members=1) as cluster:
        yield cluster


@pytest.fixture(params=BACKENDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store
    if request.param == "memory":
        opened = MemoryStore()
    elif request.param == "sqlite":
        opened = SqliteStore(str(tmp_path / "s.db"))
    else:
        cluster: EtcdCluster = request.getfixturevalue("etcd_cluster")
        opened = EtcdStore(cluster.addresses, f"/{uuid.uuid4()}", EtcdOptions(timeout=10))
    yield opened
    await opened.close()


async def put(store: Store, key: str, value: bytes = b"v", expected: int = 0) -> int:
    return await store.commit(Write(key, value, expected))


async def delete(store: Store, key: str, expected: int) -> int:
    return await store.commit(Write(key, None, expected))


async def keys(store: Store, prefix: str = "", *, revision: int = 0) -> list[str]:
    return [record.key for record in (await store.range(prefix, revision=revision)).records]


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
async def test_more_is_told_exactly(store: Store, limit: int, more: bool) -> None:
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


# -- following


async def test_a_subscriber_sees_history_then_live_events_without_gap_or_repeat(
    store: Store,
) -> None:
    first = await put(store, "a", b"1")
    second = await put(store, "a", b"2", first)
    recorder = Recorder(store, after=first)
    third = await delete(store, "a", second)
    await recorder.reached(third)
    assert recorder.events == [Event("a", b"2", second), Event("a", None, third)]


async def test_a_subscriber_from_now_sees_only_what_comes(store: Store) -> None:
    recorder = Recorder(store, after=await put(store, "a"))
    revision = await put(store, "b", b"x")
    await recorder.reached(revision)
    assert recorder.events == [Event("b", b"x", revision)]


async def test_a_subscriber_from_zero_sees_everything(store: Store) -> None:
    revision = await put(store, "a", b"1")
    recorder = Recorder(store, after=0)
    await recorder.reached(revision)
    assert recorder.events == [Event("a", b"1", revision)]


async def test_a_subscriber_of_the_future_is_spared_what_comes_before(store: Store) -> None:
    now = await store.barrier()
    recorder = Recorder(store, after=now + 1)
    await put(store, "a")
    second = await put(store, "b")
    await recorder.reached(second)
    assert recorder.events == [Event("b", b"v", second)]


async def test_every_subscriber_sees_every_event_in_order(store: Store) -> None:
    recorders = [Recorder(store, after=await store.barrier()) for _ in range(3)]
    revisions = await asyncio.gather(*(put(store, f"k{number}") for number in range(50)))
    for recorder in recorders:
        await recorder.reached(max(revisions))
        assert [event.revision for event in recorder.events] == sorted(revisions)


async def test_a_closed_subscription_is_silent(store: Store) -> None:
    recorder = Recorder(store, after=await store.barrier())
    other = Recorder(store, after=await store.barrier())
    recorder.subscription.close()
    await other.reached(await put(store, "a"))
    assert recorder.events == []
    assert recorder.failure is None


async def test_a_failing_subscriber_is_ended_and_harms_nobody(store: Store) -> None:
    ended: asyncio.Future[StoreError] = asyncio.get_running_loop().create_future()

    def fail(events: object, revision: int) -> None:
        raise RuntimeError("broken follower")

    store.subscribe(await store.barrier(), fail, ended.set_result)
    recorder = Recorder(store, after=await store.barrier())
    revision = await put(store, "a")
    await recorder.reached(revision)
    assert isinstance(await asyncio.wait_for(ended, 5), StoreError)


async def test_a_barrier_covers_every_acknowledged_write(store: Store) -> None:
    revision = await put(store, "a")
    assert await store.barrier() >= revision


async def test_a_follower_reaches_the_barrier(store: Store) -> None:
    recorder = Recorder(store, after=await store.barrier())
    await put(store, "a")
    await recorder.reached(await store.barrier())
    assert [event.key for event in recorder.events] == ["a"]


# -- compaction


async def test_compaction_keeps_current_values_and_the_compacted_revision(store: Store) -> None:
    one = await put(store, "a", b"1")
    two = await put(store, "a", b"2", one)
    three = await put(store, "b", b"3")
    await put(store, "a", b"4", two)
    await store.compact(three)
    page = await store.range("", revision=three)
    assert page.records == [Record("a", b"2", two), Record("b", b"3", three)]
    assert [record.value for record in (await store.range("")).records] == [b"4", b"3"]


async def test_below_the_compacted_revision_nothing_can_be_read(store: Store) -> None:
    one = await put(store, "a", b"1")
    two = await put(store, "a", b"2", one)
    await store.compact(two)
    with pytest.raises(Compacted) as caught:
        await store.range("", revision=one)
    assert caught.value.oldest == two


async def test_a_subscription_into_compacted_history_ends(store: Store) -> None:
    one = await put(store, "a", b"1")
    two = await delete(store, "a", one)
    await store.compact(two)
    failure = await Recorder.refusal(store, after=one)
    assert isinstance(failure, Compacted)
    assert failure.oldest == two


async def test_a_subscription_from_the_compacted_revision_goes_on(store: Store) -> None:
    one = await put(store, "a", b"1")
    await store.compact(one)
    recorder = Recorder(store, after=one)
    two = await put(store, "a", b"2", one)
    await recorder.reached(two)
    assert recorder.events == [Event("a", b"2", two)]


async def test_compacting_again_or_lower_is_no_error(store: Store) -> None:
    one = await put(store, "a")
    two = await put(store, "b")
    await store.compact(two)
    await store.compact(two)
    await store.compact(one)
    assert await keys(store) == ["a", "b"]


async def test_compacting_the_future_is_refused(store: Store) -> None:
    with pytest.raises(Ahead):
        await store.compact(await store.barrier() + 5)


async def test_a_deleted_and_compacted_key_can_be_created_again(store: Store) -> None:
    gone = await delete(store, "a", await put(store, "a"))
    await put(store, "b")
    await store.compact(gone)
    assert await keys(store) == ["b"]
    again = await put(store, "a")
    assert await keys(store) == ["a", "b"]
    assert await keys(store, revision=again - 1) == ["b"]


async def test_many_superseded_values_are_compacted_while_writers_go_on(store: Store) -> None:
    revision = 0
    for number in range(300):
        revision = await put(store, "hot", b"%d" % number, revision)
    compaction = asyncio.ensure_future(store.compact(revision))
    written = await asyncio.gather(*(put(store, f"k{number}") for number in range(50)))
    await compaction
    assert len(await keys(store)) == 51
    assert min(written) > revision


# -- the end


async def test_a_closed_store_answers_unavailable(store: Store) -> None:
    await store.close()
    with pytest.raises(Unavailable):
        await put(store, "a")
    with pytest.raises(Unavailable):
        await store.get("a")


async def test_closing_ends_subscriptions(store: Store) -> None:
    recorder = Recorder(store, after=await store.barrier())
    await store.close()
    assert isinstance(recorder.failure, Unavailable)


async def test_a_replayable_store_streams_its_state_and_its_history(store: Store) -> None:
    if not isinstance(store, Replayable):
        pytest.skip("a remote store is paged through")
    one = await put(store, "a", b"1")
    two = await put(store, "b", b"2")
    await store.compact(one)
    three = await put(store, "a", b"3", one)
    four = await delete(store, "b", two)
    revision, records = store.snapshot()
    assert (revision, list(records)) == (four, [Record("a", b"3", three)])
    compacted, events = store.history()
    assert compacted == one
    assert list(events) == [Event("b", b"2", two), Event("a", b"3", three), Event("b", None, four)]
