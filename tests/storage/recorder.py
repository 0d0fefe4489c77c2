"""A subscriber that keeps what it is told, for tests that compare it with what was written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from instar.wire.storage.store import Event, Store, StoreError


class Recorder:
    def __init__(self, store: Store, after: int) -> None:
        self.events: list[Event] = []
        self.revision = after
        self.failure: StoreError | None = None
        self._changed = asyncio.Event()
        self.subscription = store.subscribe(after, self._sink, self._ended)

    @classmethod
    async def refusal(cls, store: Store, after: int) -> StoreError:
        """Why a subscription does not work, told at once or later."""
        try:
            recorder = cls(store, after)
        except StoreError as error:
            return error
        async with asyncio.timeout(10):
            while recorder.failure is None:
                await recorder._next_change()
        return recorder.failure

    async def reached(self, revision: int) -> None:
        async with asyncio.timeout(20):
            while self.revision < revision:
                if self.failure is not None:
                    raise self.failure
                await self._next_change()

    async def _next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _sink(self, events: Sequence[Event], revision: int) -> None:
        assert self.failure is None
        for event in events:
            assert event.revision > self.revision
            self.revision = event.revision
            self.events.append(event)
        assert revision >= self.revision
        self.revision = revision
        self._changed.set()

    def _ended(self, error: StoreError) -> None:
        assert self.failure is None
        self.failure = error
        self._changed.set()
