"""Writers that keep a record of what they were told, and a checker that holds the store to it.

The promise: what was acknowledged is there, at the revision told, once; what was refused as
``Unavailable`` is there at most once; a follower saw exactly that, in order, without a gap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from instar.wire.storage.store import Event, Record, Stale, Store, Unavailable, Write
from tests.storage.recorder import Recorder


class Checker:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.acknowledged: list[Event] = []
        self.doubtful: set[tuple[str, bytes | None]] = set()
        self.refused = 0
        self._progress = asyncio.Event()
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, writers: int) -> None:
        self._tasks = [asyncio.ensure_future(self._write(f"w{n}")) for n in range(writers)]

    async def stop(self) -> None:
        self._stopping = True
        async with asyncio.timeout(30):
            await asyncio.gather(*self._tasks)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                self._progress.clear()
                progress = asyncio.ensure_future(self._progress.wait())
                await asyncio.wait([progress, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
                for task in self._tasks:
                    if task.done():
                        task.result()

    async def more_acknowledged(self, count: int) -> None:
        goal = len(self.acknowledged) + count
        await self.until(lambda: len(self.acknowledged) >= goal)

    async def verify(self, recorder: Recorder) -> None:
        """Compare what was told with the final state and with what the follower saw."""
        await recorder.reached(await self._store.barrier())
        seen = set(recorder.events)
        lost = [event for event in self.acknowledged if event not in seen]
        assert not lost, f"acknowledged, and never seen by the follower: {lost[:3]}"

        puts = [(event.key, event.value) for event in recorder.events if event.value is not None]
        assert len(puts) == len(set(puts)), "a write was applied twice"
        known = {(event.key, event.value) for event in self.acknowledged} | self.doubtful
        assert {(event.key, event.value) for event in recorder.events} <= known

        state: dict[str, Record] = {}
        for event in recorder.events:
            state.pop(event.key, None)
            if event.value is not None:
                state[event.key] = Record(event.key, event.value, event.revision)
        page = await self._store.range("")
        assert list(page.records) == [state[key] for key in sorted(state)]

    async def _write(self, name: str) -> None:
        """Create, change and delete keys of its own; every value is written once only."""
        count = 0
        while not self._stopping:
            key, revision = f"{name}/{count // 10}", 0
            for step in range(10):
                count += 1
                last = step == 9 and count % 20 == 0
                value = None if last else b"%s-%d" % (name.encode(), count)
                revision = await self._commit(Write(key, value, revision))

    async def _commit(self, write: Write) -> int:
        try:
            revision = await self._store.commit(write)
        except Unavailable:
            self.refused += 1
            self.doubtful.add((write.key, write.value))
            self._progress.set()
            return await self._current(write.key)
        except Stale:
            # Its own key: an earlier write in doubt has come after all.
            assert any(key == write.key for key, _ in self.doubtful)
            return await self._current(write.key)
        self.acknowledged.append(Event(write.key, write.value, revision))
        self._progress.set()
        return revision if write.value is not None else 0

    async def _current(self, key: str) -> int:
        while True:
            try:
                found = await self._store.get(key)
                return found.revision if found else 0
            except Unavailable:
                await asyncio.sleep(0.05)
