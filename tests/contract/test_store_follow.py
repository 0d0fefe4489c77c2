"""What every ``Store`` must do, on every backend there is: following, compacting, ending."""

from __future__ import annotations

import asyncio

import pytest

from instar.wire.storage.store import (
    Ahead,
    Compacted,
    Event,
    Local,
    Record,
    Store,
    StoreError,
    Unavailable,
)
from tests.contract.steps import delete, keys, put
from tests.storage.recorder import Recorder

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


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


async def test_a_failing_subscriber_is_ended_and_others_continue(store: Store) -> None:
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


async def test_a_subscription_from_the_compacted_revision_continues(store: Store) -> None:
    one = await put(store, "a", b"1")
    await store.compact(one)
    recorder = Recorder(store, after=one)
    two = await put(store, "a", b"2", one)
    await recorder.reached(two)
    assert recorder.events == [Event("a", b"2", two)]


async def test_compacting_again_or_lower_is_not_an_error(store: Store) -> None:
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


async def test_many_superseded_values_are_compacted_while_writers_continue(store: Store) -> None:
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


async def test_a_local_store_streams_its_log(store: Store) -> None:
    if not isinstance(store, Local):
        pytest.skip("a remote store is paged through")
    one = await put(store, "a", b"1")
    two = await put(store, "b", b"2")
    await store.compact(one)
    three = await put(store, "a", b"3", one)
    four = await delete(store, "b", two)
    assert store.compacted == one
    log = [Event("a", b"1", one), Event("b", b"2", two), Event("a", b"3", three)]
    assert list(store.log(four)) == [*log, Event("b", None, four)]
    assert list(store.log(three)) == log
    assert list(store.log(four, {"b"})) == [Event("b", b"2", two), Event("b", None, four)]
    assert store.counts() == {"a": 2, "b": 2}
    assert list(store.names("a")) == [("", three)]
