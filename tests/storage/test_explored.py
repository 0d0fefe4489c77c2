"""Every schedule of the model in ``explored.py`` is replayed on the real watch cache, over a real
store: what it shows at any revision is what the model says, or a 410 where that may be.

``INSTAR_EXPLORED_LENGTH=6 pytest tests/storage/test_explored.py`` explores longer schedules.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.store import (
    Compacted,
    Ended,
    Event,
    Page,
    Record,
    Sink,
    Stale,
    Subscription,
    Unavailable,
    Write,
)
from instar.wire.storage.watchcache.cache import Cache
from instar.wire.storage.watchcache.collection import Change, Collection, WindowLimits
from tests.storage.explored import Model, Step, schedules

LENGTH = int(os.environ.get("INSTAR_EXPLORED_LENGTH", "4"))
PREFIX = "g.io/things/"


@dataclass(frozen=True)
class _Entry:
    revision: int
    size: int = 1

    def replaced(self) -> None: ...


class _Link:
    """The store as one process reaches it: events wait until the schedule delivers them."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._waiting: list[Event] = []
        self._sink: Sink | None = None
        self._ended: Ended | None = None
        self._subscription: Subscription | None = None

    async def get(self, key: str) -> Record | None:
        return await self._store.get(key)

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        return await self._store.range(prefix, start=start, limit=limit)

    async def commit(self, write: Write) -> int:
        return await self._store.commit(write)

    async def barrier(self) -> int:
        return await self._store.barrier()

    async def compact(self, revision: int) -> None:
        await self._store.compact(revision)

    async def close(self) -> None: ...

    def subscribe(self, after: int, sink: Sink, ended: Ended) -> Subscription:
        def take(events: Sequence[Event], revision: int) -> None:
            self._waiting += events

        self._sink, self._ended = sink, ended
        self._waiting.clear()
        self._subscription = self._store.subscribe(after, take, ended)
        return self._subscription

    def deliver(self) -> None:
        event = self._waiting.pop(0)
        assert self._sink is not None
        self._sink([event], event.revision)

    def cut(self) -> None:
        assert self._ended is not None
        assert self._subscription is not None
        self._subscription.close()
        self._ended(Unavailable("cut"))


class _Process:
    def __init__(self, store: MemoryStore, window: int) -> None:
        self.link = _Link(store)
        self.window = window
        self.cache: Cache[_Entry] = Cache(
            self.link, lambda record, suffix: _Entry(record.revision), WindowLimits(events=window)
        )
        self.things: Collection[_Entry] = self.cache.collection(PREFIX)
        """Referenced for as long as the process lives, as by a server that serves it."""
        self.told = 0
        """The compaction that it was told of."""
        self.seen: list[int] = []
        self.resumed_at = -1

    def watch(self, revision: int) -> None:
        self.seen = [change.revision for change in self.things.changes_after(revision)]
        self.resumed_at = revision
        self.things.listeners.append(self._changed)

    def _changed(self, change: Change[_Entry]) -> None:
        self.seen.append(change.revision)

    async def cut(self) -> None:
        if self._changed in self.things.listeners:
            self.things.listeners.remove(self._changed)  # watchers are ended after a reload
        self.resumed_at = -1
        self.link.cut()
        assert self.cache._reload is not None
        await self.cache._reload
        assert self.cache.failure is None


class _World:
    def __init__(self, window: int) -> None:
        self.store = MemoryStore()
        self._window = window
        self.processes: list[_Process | None] = [None, None]

    async def begin(self) -> None:
        await self._join(0)

    async def end(self) -> None:
        for process in self.processes:
            if process is not None:
                await process.cache.stop()
        await self.store.close()

    async def _join(self, at: int) -> None:
        process = self.processes[at] = _Process(self.store, self._window)
        await process.cache.start()

    async def take(self, step: Step) -> None:
        match step:
            case ("put" | "delete" | "stale" as verb, key):
                await self._write(verb, PREFIX + key)
            case ("compact",):
                revision = await self.store.barrier() - 1
                await self.store.compact(revision)
                first = next((each for each in self.processes if each is not None), None)
                if first is not None:  # the process that leads compacts, and tells its own cache
                    first.cache.compacted(revision)
                    first.told = revision
            case ("join", at):
                await self._join(int(at))
            case (verb, at, *rest):
                process = self.processes[int(at)]
                assert process is not None
                if verb == "leave":
                    await process.cache.stop()
                    self.processes[int(at)] = None
                elif verb == "cut":
                    await process.cut()
                elif verb == "deliver":
                    process.link.deliver()
                else:
                    await self._watch(process, int(rest[0]))

    async def _write(self, verb: str, key: str) -> None:
        record = await self.store.get(key)
        expected = record.revision if record is not None else 0
        if verb == "stale":
            before = await self.store.barrier()
            with pytest.raises(Stale):
                await self.store.commit(Write(key, b"x", expected + 77))
            assert await self.store.barrier() == before
            return
        await self.store.commit(Write(key, None if verb == "delete" else b"v", expected))

    async def _watch(self, process: _Process, revision: int) -> None:
        if revision < process.things.complete_since:
            with pytest.raises(Compacted):
                process.watch(revision)
        elif process.resumed_at < 0:
            process.watch(revision)


async def _replay(schedule: Sequence[Step], window: int) -> None:
    world, model = _World(window), Model()
    await world.begin()
    try:
        for step in schedule:
            await world.take(step)
            model = model.after(step)
            await _compare(world, model)
    finally:
        await world.end()


async def _compare(world: _World, model: Model) -> None:
    assert await world.store.barrier() == model.revision
    for key in ("a", "b"):
        past = await world.store.past(PREFIX + key)
        shown = {(abs(event.revision), event.value is not None) for event in past.events}
        kept = {(at, exists) for at, name, exists in model.log if name == key}
        assert shown <= kept
        after = {entry for entry in kept if entry[0] > model.compacted}
        assert after <= shown
    for process, expected in zip(world.processes, model.processes, strict=True):
        if process is None or expected is None:
            assert process is None
            assert expected is None
            continue
        things, reached = process.things, expected.reached
        assert process.cache.revision == reached
        state = {suffix: entry.revision for suffix, entry in things.entries.items()}
        assert state == model.state(reached)
        oldest = model.oldest_known(expected, process.told, process.window)
        assert things.complete_since <= oldest, "it forgot too much"
        for revision in range(1, reached + 1):
            _compare_past(things, model, revision, reached)
        if process.resumed_at >= 0:  # without a gap, twice or out of order
            expected_events = model.between(process.resumed_at, reached)
            assert process.seen == [at for at, _, _ in expected_events]


def _compare_past(things: Collection[_Entry], model: Model, revision: int, reached: int) -> None:
    if revision < things.complete_since:
        with pytest.raises(Compacted):
            things.changes_after(revision)
        with pytest.raises(Compacted):
            [*things.as_of(revision)]
        return
    changes = [(change.revision, change.suffix) for change in things.changes_after(revision)]
    assert changes == [(at, key) for at, key, _ in model.between(revision, reached)]
    shown = {suffix: entry.revision for suffix, entry in things.as_of(revision)}
    assert shown == model.state(revision)


@pytest.mark.parametrize("window", [1, 2])
def test_every_explored_schedule_shows_what_the_model_says(
    caplog: pytest.LogCaptureFixture, window: int
) -> None:
    caplog.set_level(logging.ERROR)  # each broken stream is told

    async def run() -> int:
        replayed = 0
        for schedule in schedules(LENGTH):
            try:
                await _replay(schedule, window)
            except BaseException as error:
                error.add_note(f"schedule: {' '.join('-'.join(step) for step in schedule)}")
                raise
            replayed += 1
        return replayed

    assert asyncio.run(run()) == sum(1 for _ in schedules(LENGTH))
