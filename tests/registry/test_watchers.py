"""Everybody sees each change that concerns them once: whatever waits, whoever joins meanwhile, and
however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from instar.server.registry.stored import watchers
from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry
from instar.server.registry.stored.watch_dispatcher import WatchDispatcher
from instar.server.registry.stored.watchers import ChangeKey, WatchChannel, Watcher, WatchHub
from instar.wire.storage.watchcache.collection import Change, Collection, WindowLimits


class Slow:
    """Frames that wait for a conversion until it is released, and then come at once."""

    change_keys = None

    def __init__(self) -> None:
        self.released = asyncio.Event()

    def __call__(self, change: Change[CacheEntry]) -> bytes | Coroutine[Any, Any, bytes]:
        if self.released.is_set():
            return b"%d;" % change.revision
        return self._framed(change)

    async def _framed(self, change: Change[CacheEntry]) -> bytes:
        await self.released.wait()
        return b"%d;" % change.revision

    async def prefetch(self, changes: Sequence[Change[CacheEntry]]) -> None:
        await asyncio.sleep(0)

    def bookmark(self, revision: int) -> bytes:
        return b""


class Taken:
    def __init__(self) -> None:
        self.data = b""
        self.complete = asyncio.Event()

    def receive(self, data: bytes) -> None:
        self.data += data
        if data.endswith(b"3;"):
            self.complete.set()

    def over(self) -> None:
        self.complete.set()


def change(revision: int) -> Change[CacheEntry]:
    return Change(revision, "a", InMemoryEntry(b"{}", revision, "a"), None)


async def joined_while_changes_wait() -> tuple[bytes, bytes]:
    objects: Collection[CacheEntry] = Collection("p/", 0, WindowLimits())
    hub, frames, old, new = WatchHub(objects), Slow(), Taken(), Taken()
    hub.join("kind", frames, 0).attach(old)
    objects.apply(change(1))
    objects.apply(change(2))
    hub.join("kind", frames, 2).attach(new)
    objects.apply(change(3))
    frames.released.set()
    await asyncio.gather(old.complete.wait(), new.complete.wait())
    return old.data, new.data


def test_a_watcher_that_joins_gets_no_change_it_has_seen() -> None:
    told_before, told_since = asyncio.run(joined_while_changes_wait())
    assert told_before == b"1;2;3;"
    assert told_since == b"3;"


class Numbers:
    """Frames that are there at once; counts what it was asked."""

    def __init__(self, change_keys: Sequence[ChangeKey] | None = None) -> None:
        self.change_keys = change_keys
        self.asked: list[int] = []

    def __call__(self, change: Change[CacheEntry]) -> bytes:
        self.asked.append(change.revision)
        return b"%d;" % change.revision

    async def prefetch(self, changes: Sequence[Change[CacheEntry]]) -> None: ...

    def bookmark(self, revision: int) -> bytes:
        return b""


def labelled(revision: int, suffix: str, app: str, before: str = "") -> Change[CacheEntry]:
    def entry(value: str) -> CacheEntry:
        raw = b'{"metadata":{"labels":{"app":"%b"}}}' % value.encode()
        return InMemoryEntry(raw, revision, suffix)

    return Change(revision, suffix, entry(app), entry(before) if before else None)


async def asked_about(change_keys: Sequence[ChangeKey] | None) -> list[int]:
    objects: Collection[CacheEntry] = Collection("p/", 0, WindowLimits())
    hub, frames = WatchHub(objects), Numbers(change_keys)
    hub.join("kind", frames, 0)
    objects.apply(labelled(1, "ns/a", "one"))
    objects.apply(labelled(2, "ns/b", "two"))
    objects.apply(labelled(3, "other/a", "two", before="one"))
    return frames.asked


def test_a_change_is_only_shown_to_those_it_can_concern() -> None:
    assert asyncio.run(asked_about(None)) == [1, 2, 3]
    assert asyncio.run(asked_about(["ns/a"])) == [1]
    assert asyncio.run(asked_about(["ns/"])) == [1, 2]
    assert asyncio.run(asked_about([("app", "two")])) == [2, 3]
    assert asyncio.run(asked_about([("app", "three")])) == []


def test_an_object_that_loses_a_label_reaches_watchers_of_the_label() -> None:
    assert asyncio.run(asked_about([("app", "one")])) == [1, 3]


async def left_and_joined_again() -> list[int]:
    objects: Collection[CacheEntry] = Collection("p/", 0, WindowLimits())
    hub, frames = WatchHub(objects), Numbers([("app", "one")])
    hub.leave(hub.join("kind", frames, 0))
    objects.apply(labelled(1, "ns/a", "one"))
    hub.join("kind", frames, 1)
    objects.apply(labelled(2, "ns/a", "one"))
    return frames.asked


def test_changes_are_not_routed_to_watchers_that_left() -> None:
    assert asyncio.run(left_and_joined_again()) == [2]


async def served_in_slices() -> tuple[list[bytes], bytes]:
    channel = WatchChannel(Numbers(), WatchDispatcher())
    takers = [Taken() for _ in range(100)]

    def join(taker: Taken, revision: int) -> None:
        watcher = Watcher(revision, channel)
        watcher.attach(taker)
        channel.watchers.add(watcher)

    for taker in takers:
        join(taker, 0)
    channel.feed(change(1))
    channel.feed(change(2))
    assert not channel.send_pending(lambda: False)
    assert sum(bool(taker.data) for taker in takers) < 100
    late = Taken()
    join(late, 2)
    channel.feed(change(3))
    while not channel.send_pending(lambda: False):
        pass
    return [taker.data for taker in takers], late.data


def test_watchers_served_some_at_a_time_miss_nothing_and_see_nothing_twice() -> None:
    before, late = asyncio.run(served_in_slices())
    assert before == [b"1;2;3;"] * 100
    assert late == b"3;"


async def ended_in_the_middle() -> list[bytes]:
    channel = WatchChannel(Numbers(), WatchDispatcher())
    takers = [Taken() for _ in range(100)]
    for taker in takers:
        watcher = Watcher(0, channel)
        watcher.attach(taker)
        channel.watchers.add(watcher)
    channel.feed(change(1))
    channel.send_pending(lambda: False)
    channel.feed(change(2))
    channel.end()
    assert all(taker.complete.is_set() for taker in takers)
    return [taker.data for taker in takers]


def test_a_channel_sends_all_pending_events_before_it_ends() -> None:
    assert asyncio.run(ended_in_the_middle()) == [b"1;2;"] * 100


class Portions(Taken):
    def __init__(self) -> None:
        super().__init__()
        self.portions: list[bytes] = []

    def receive(self, data: bytes) -> None:
        self.portions.append(data)


async def handed_over_in_portions() -> list[bytes]:
    channel, taker = WatchChannel(Numbers(), WatchDispatcher()), Portions()
    watcher = Watcher(0, channel)
    watcher.attach(taker)
    channel.watchers.add(watcher)
    for revision in (1, 2, 3, 1_000_000, 1_000_001, 1_000_002):
        channel.feed(change(revision))
    channel.flush()
    assert watcher.last_revision == 1_000_002
    return taker.portions


def test_no_more_than_so_many_bytes_go_together_and_a_longer_line_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watchers, "MAX_TOGETHER", 4)
    portions = asyncio.run(handed_over_in_portions())
    assert portions == [b"1;2;", b"3;", b"1000000;", b"1000001;", b"1000002;"]
