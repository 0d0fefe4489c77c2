"""What every ``Store`` tells of the past: one key's events, and everything at a revision."""

from __future__ import annotations

import pytest

from instar.wire.storage.store import Ahead, Compacted, Event, Past, Remembering, Store
from tests.contract.steps import delete, keys, put

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]


async def _past(store: Store, key: str, *, before: int = 0, limit: int = 0) -> Past:
    assert isinstance(store, Remembering)
    found = await store.past(key, before=before, limit=limit)
    return Past([event._replace(seal=None) for event in found.events], found.more)


async def _compacted(store: Store) -> int:
    assert isinstance(store, Remembering)
    return (await store.past("a")).compacted


async def test_a_key_tells_its_writes_and_its_deletion_in_order(store: Store) -> None:
    first = await put(store, "a", b"1")
    await put(store, "ab", b"other")
    second = await put(store, "a", b"2", first)
    gone = await delete(store, "a", second)
    again = await put(store, "a", b"3")

    found = await _past(store, "a")

    assert found == Past(
        [
            Event("a", b"1", first),
            Event("a", b"2", second),
            Event("a", None, gone),
            Event("a", b"3", again),
        ],
        more=False,
    )


async def test_a_key_that_is_gone_still_tells_and_one_that_never_was_tells_nothing(
    store: Store,
) -> None:
    made = await put(store, "a", b"1")
    gone = await delete(store, "a", made)

    assert (await _past(store, "a")).events == [Event("a", b"1", made), Event("a", None, gone)]
    assert await _past(store, "b") == Past([], more=False)


async def test_a_limited_history_has_the_newest_events(store: Store) -> None:
    revisions = [await put(store, "a", b"0")]
    for number in range(1, 5):
        revisions.append(await put(store, "a", b"%d" % number, revisions[-1]))

    newest = await _past(store, "a", limit=2)
    older = await _past(store, "a", before=newest.events[0].revision, limit=2)
    oldest = await _past(store, "a", before=older.events[0].revision, limit=2)

    assert [event.value for event in newest.events] == [b"3", b"4"]
    assert [event.value for event in older.events] == [b"1", b"2"]
    assert [event.value for event in oldest.events] == [b"0"]
    assert (newest.more, older.more, oldest.more) == (True, True, False)


async def test_compaction_leaves_the_value_that_was_current_then(store: Store) -> None:
    first = await put(store, "a", b"1")
    second = await put(store, "a", b"2", first)
    third = await put(store, "a", b"3", second)
    dead = await delete(store, "b", await put(store, "b", b"x"))

    await store.compact(second)
    within = await _past(store, "a")
    assert await _compacted(store) == second
    await store.compact(dead)

    assert [event.value for event in within.events] == [b"2", b"3"]
    assert (await _past(store, "a")).events == [Event("a", b"3", third)]
    assert (await _past(store, "b")).events == []


async def test_everything_is_readable_at_a_revision_until_it_is_compacted(store: Store) -> None:
    first = await put(store, "a", b"1")
    second = await put(store, "b", b"1")
    third = await delete(store, "a", first)

    assert await keys(store, revision=first) == ["a"]
    assert await keys(store, revision=second) == ["a", "b"]
    assert await keys(store, revision=third) == ["b"]
    await store.compact(third)
    with pytest.raises(Compacted):
        await store.range("a", revision=second)
    with pytest.raises(Ahead):
        await store.range("a", revision=third + 1000)
