"""The local stores against the simplest model there is: the list of everything ever written."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.sqlite.store import SqliteStore
from instar.wire.storage.store import Compacted, Event, Record, Stale, Store, Write
from tests.storage.recorder import Recorder

T = TypeVar("T")
KEYS = st.sampled_from(["a", "a/b", "a/c", "b", "ü"])
VALUES = st.binary(max_size=4)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.log: list[Event] = []
        self.compacted = 0
        self.store = self.run(self.open())
        self.recorder = self.run(self.follow(0))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def open(self) -> Store:
        return MemoryStore()

    async def follow(self, after: int) -> Recorder:
        return Recorder(self.store, after)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()

    @property
    def revision(self) -> int:
        return self.log[-1].revision if self.log else 1

    def state(self, revision: int) -> dict[str, Record]:
        state: dict[str, Record] = {}
        for event in self.log:
            if event.revision > revision:
                break
            if event.value is None:
                del state[event.key]
            else:
                state[event.key] = Record(event.key, event.value, event.revision)
        return state

    @rule(key=KEYS, value=st.none() | VALUES, skew=st.sampled_from([0, 0, 0, 1]))
    def write(self, key: str, value: bytes | None, skew: int) -> None:
        found = self.state(self.revision).get(key)
        actual = found.revision if found else 0
        expected = actual + skew
        if value is None and expected == 0:
            return
        if skew:
            with pytest.raises(Stale):
                self.run(self.store.commit(Write(key, value, expected)))
            return
        revision = self.run(self.store.commit(Write(key, value, expected)))
        assert revision > self.revision
        self.log.append(Event(key, value, revision))

    @rule(writes=st.dictionaries(KEYS, VALUES, min_size=2))
    def write_together(self, writes: dict[str, bytes]) -> None:
        state = self.state(self.revision)

        async def together() -> list[int]:
            return await asyncio.gather(
                *(
                    self.store.commit(Write(key, value, state[key].revision if key in state else 0))
                    for key, value in writes.items()
                )
            )

        revisions = self.run(together())
        events = zip(writes.items(), revisions, strict=True)
        done = [Event(key, value, revision) for (key, value), revision in events]
        self.log += sorted(done, key=lambda event: event.revision)

    @rule(
        prefix=st.sampled_from(["", "a", "a/", "b", "x"]),
        start=KEYS | st.just(""),
        limit=st.integers(0, 3),
        back=st.integers(0, 6),
    )
    def read(self, prefix: str, start: str, limit: int, back: int) -> None:
        revision = max(1, self.revision - back)
        if revision < self.compacted:
            with pytest.raises(Compacted):
                self.run(self.store.range(prefix, revision=revision))
            return
        state = self.state(revision)
        wanted = [state[k] for k in sorted(state) if k.startswith(prefix) and k >= start]
        page = self.run(self.store.range(prefix, start=start, limit=limit, revision=revision))
        assert page.records == (wanted[:limit] if limit else wanted)
        assert page.more == (0 < limit < len(wanted))
        assert page.revision == revision

    @rule(back=st.integers(0, 6))
    def compact(self, back: int) -> None:
        revision = max(1, self.revision - back)
        self.run(self.store.compact(revision))
        self.compacted = max(self.compacted, revision)

    @rule(back=st.integers(0, 6))
    def replay(self, back: int) -> None:
        after = max(self.compacted, self.revision - back)
        recorder = self.run(self.follow(after))
        assert recorder.events == [event for event in self.log if event.revision > after]
        recorder.subscription.close()

    @invariant()
    def current_state_is_the_model(self) -> None:
        state = self.state(self.revision)
        page = self.run(self.store.range(""))
        assert page.records == [state[key] for key in sorted(state)]
        assert page.revision == self.revision

    @invariant()
    def the_follower_saw_everything_once(self) -> None:
        assert self.recorder.events == self.log


class SqliteMachine(StoreMachine):
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        super().__init__()

    async def open(self) -> Store:
        return SqliteStore(str(Path(self.folder.name) / "s.db"))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()

    @precondition(lambda self: self.log)
    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.store = self.run(self.open())
        seen = self.recorder.events
        self.recorder = self.run(self.follow(self.revision))
        self.recorder.events = seen


TestMemoryStore = StoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=60, deadline=None)
TestSqliteStore = SqliteMachine.TestCase
TestSqliteStore.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
