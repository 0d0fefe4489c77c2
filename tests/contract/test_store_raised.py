"""What a store must do whose revision can be raised above that of another server."""

from __future__ import annotations

import pytest

from instar.wire.storage.store import Compacted, Event, RaisableStore, Store
from tests.contract.steps import delete, keys, put
from tests.storage.recorder import Recorder

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_loop")]

RAISABLE = pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"], indirect=True)
_FAR = 7_000_000_000


@pytest.fixture
def raisable(store: Store) -> RaisableStore:
    assert isinstance(store, RaisableStore)
    return store


@RAISABLE
async def test_later_writes_are_above_the_raised_revision(
    store: Store, raisable: RaisableStore
) -> None:
    before = await put(store, "a")

    await raisable.raise_revision(_FAR)

    first = await put(store, "b")
    assert first > _FAR
    assert await delete(store, "a", before) > first
    assert await keys(store, revision=first) == ["a", "b"]
    assert await store.barrier() > first


@RAISABLE
async def test_raising_to_a_lower_revision_changes_nothing(
    store: Store, raisable: RaisableStore
) -> None:
    before = await put(store, "a")

    await raisable.raise_revision(before - 1)

    assert await put(store, "b") == before + 1


@RAISABLE
async def test_followers_receive_the_writes_on_both_sides(
    store: Store, raisable: RaisableStore
) -> None:
    start = await store.barrier()
    live = Recorder(store, after=start)
    before = await put(store, "a", b"1")
    await raisable.raise_revision(_FAR)
    after = await put(store, "b", b"2")

    await live.reached(after)
    assert live.events == [Event("a", b"1", before), Event("b", b"2", after)]
    late = Recorder(store, after=start)
    await late.reached(after)
    assert late.events == live.events


@RAISABLE
async def test_history_below_the_raised_revision_can_be_compacted(
    store: Store, raisable: RaisableStore
) -> None:
    before = await put(store, "a")
    await raisable.raise_revision(_FAR)
    after = await put(store, "b")

    await store.compact(after)

    assert await keys(store) == ["a", "b"]
    with pytest.raises(Compacted):
        await store.range("", revision=before)
